"""An access leaves its tensor at sizes that interval analysis does not see.

**Rule.** Every access lies inside its tensor for all sizes that the guards admit, also where its
index is a minimum, a quotient or a selection. The solver looks for sizes, coordinates and a
thread outside; what it finds is executed on numbers before it is reported.

**If broken.** A fault; or, inside the allocation, silent corruption of what lies beside the
tensor.

**Instead.** `mask=`, a condition, `require(...)` of what the index relies on, or a primitive that
clips.

**Source.** CUDA C++ Programming Guide, device memory accesses; NVIDIA/cutlass#3651.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.smt.report import out_of_range

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        v = load(x[min(n * 32, N - 32) + lane()])  # CK471
        store(y[n * 32 + lane()], v, mask=n * 32 + lane() < N)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    require(N >= 32)
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        v = load(x[min(n * 32, N - 32) + lane()])
        store(y[n * 32 + lane()], v, mask=n * 32 + lane() < N)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    helps = ("mask the access", "or require what the index relies on")
    return out_of_range(ctx, RULE, lambda q: q.space == "global" and not q.conditional, helps)


RULE = rule(
    code="CK471",
    name="global-range",
    gate="program safety",
    layer="L4",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
