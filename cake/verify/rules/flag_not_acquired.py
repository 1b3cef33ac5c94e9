"""Data of other CTAs are loaded behind a flag that was read without an acquire.

**Rule.** Between the reading of a flag in global memory and the loads of the data it tells of
stands an acquire: `order="acquire"` or "acq_rel" of the reading, or a `fence()`.

**If broken.** The loads overtake the flag, or find old lines in the L1 cache.

**Instead.** `atomic_add(count[0], 1, order="acq_rel")`, or `fence()` behind the comparison.

**Source.** PTX ISA, Memory Consistency Model, acquire pattern; NVIDIA/cub#369.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.flags import broken
from cake.verify.rule import rule

_TEXT = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "M", 32], y: Tensor[i32, "M", 32], sums: Tensor[i32, 32],
           count: Tensor[i32, 1]):
    m = grid(M)
    r = role(warps=1)
    with r:
        reduce_add(sums[lane()], load(x[m, lane()]))
        fence()
        unit_sync()
        ticket = 0
        if lane() == 0:
            ticket = atomic_add(count[0], 1)
        ticket = shfl(ticket, 0)
        if ticket == M - 1:
            {fence}store(y[m, lane()], load(sums[lane()], cache="cg")){mark}
"""
BAD = _TEXT.format(fence="", mark="  # CK379")
GOOD = _TEXT.format(fence="fence()\n            ", mark="")


def check(ctx: Context) -> Iterator[Diagnostic]:
    for b in broken(ctx):
        if b.lack == "acquire":
            yield RULE.at(
                b.second.call.loc,
                f"{b.data} of other CTAs is loaded behind {b.flag}, which was read without acquire",
                related=[(b.first.call.loc, f"{b.flag} is read here")],
                facts={"data": b.data, "flag": b.flag},
                helps=('write order="acquire" there, or fence() between',),
            )


RULE = rule(
    code="CK379",
    name="flag-not-acquired",
    gate="data consistency",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
