"""A kernel reads tensors and writes none.

**Rule.** What a kernel loads leads to a store: to a tensor or a workspace.

**If broken.** Nothing remains of the work: the output keeps what was there.

**Instead.** Store the result.

**Source.** siboehm/SGEMM_CUDA#20: a kernel that computes nothing passes a weak comparison.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.footprints import footprints
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])  # CK365
        total = v + load(y[m, lane()])
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])
        store(y[m, lane()], v + load(y[m, lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    every = footprints(ctx)
    if every and all(f.access.action == "read" for f in every):
        read = sorted({f.place.tensor for f in every})
        yield RULE.at(
            every[0].site.call.loc,
            f"the kernel reads {', '.join(read)} and writes nothing",
            facts={"tensors": read},
            helps=("store the result",),
        )


RULE = rule(
    code="CK365",
    name="no-output",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
