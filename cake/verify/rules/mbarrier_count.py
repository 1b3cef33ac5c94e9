"""An mbarrier's arrival count cannot be initialised.

**Rule.** `arrivals=` is between 1 and 2^20 - 1.

**If broken.** The phase never completes, or at any time. ptxas accepts 0 and 2^20.

**Instead.** Count the warps that arrive in one phase: `arrive` arrives once a warp.

**Source.** PTX ISA, mbarrier.init.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Barrier
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 32]):
    b = barrier(arrivals=1048576)  # CK336
    first = role(warps=1)
    second = role(warps=1)
    with first:
        arrive(b, 0)
    with second:
        barrier_wait(b, 0, 0)
        store(y[lane()], 1.0)
"""

GOOD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 32]):
    n = named_barrier(threads=64)
    first = role(warps=1)
    second = role(warps=1)
    with first:
        named_arrive(n)
    with second:
        named_sync(n)
        store(y[lane()], 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    limit = ctx.target.mbarrier.count_max
    for b in ctx.program.find(Barrier):
        if not 1 <= b.arrivals <= limit:
            yield RULE.at(
                b.loc,
                f"{b.name} expects {b.arrivals} arrivals a phase, an mbarrier takes 1 to {limit}",
                facts={"barrier": b.name, "value": b.arrivals, "low": 1, "high": limit},
                helps=("count the warps that arrive in one phase",),
            )


RULE = rule(
    code="CK336",
    name="mbarrier-count",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
