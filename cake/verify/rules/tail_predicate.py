"""A mask or condition lets an access leave its tensor.

**Rule.** The mask and the conditions around an access keep it inside its tensor, for all sizes
that the guards admit. The solver looks for sizes, coordinates and a thread for which they do not;
what it finds is executed on numbers before it is reported.

**If broken.** A fault; or, inside the allocation, silent corruption of what lies behind the
tensor. Only tails are affected: sizes that are multiples of the tile hide it.

**Instead.** Compare with the size of the tensor that is accessed, by `<`; with `width=`, the last
of the elements must be inside.

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
    n = grid(cdiv(N, 128))
    r = role(warps=4)
    with r as u:
        i = n * 128 + u * 32 + lane()
        if i < N:
            store(y[i], load(x[min(i + 1, N)], mask=i + 1 <= N))  # CK470
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    r = role(warps=4)
    with r as u:
        i = n * 128 + u * 32 + lane()
        if i < N:
            store(y[i], load(x[min(i + 1, N - 1)], mask=i + 1 <= N))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    helps = ("compare the index with the size by <", "or mask the access")
    return out_of_range(ctx, RULE, lambda q: q.space == "global" and q.conditional, helps)


RULE = rule(
    code="CK470",
    name="tail-predicate",
    gate="program safety",
    layer="L4",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
