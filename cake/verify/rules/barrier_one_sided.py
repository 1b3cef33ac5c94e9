"""A declared barrier is waited for by nobody, or signalled by nobody.

**Rule.** Somebody waits at every named barrier and mbarrier, and somebody arrives at it (a copy
with `barrier=` signals an mbarrier too).

**If broken.** Without a signal the waiters hang. Without a waiter the barrier orders nothing, and
what was copied on it may be read too early.

**Instead.** Write the missing side, or remove the barrier.

**Source.** PTX ISA, barrier, mbarrier; tile-ai/tilelang#2566.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import ResourceRef
from cake.ir.program import Barrier
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 32]):
    first = role(warps=1)
    second = role(warps=1)
    b = named_barrier(threads=64)  # CK335
    with first:
        named_arrive(b)
    with second:
        named_arrive(b)
        store(y[lane()], 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 32]):
    first = role(warps=1)
    second = role(warps=1)
    b = named_barrier(threads=64)
    with first:
        named_arrive(b)
    with second:
        named_sync(b)
        store(y[lane()], 1.0)
"""

_WAITS = frozenset({"named_sync", "barrier_wait"})


def check(ctx: Context) -> Iterator[Diagnostic]:
    for barrier in (*ctx.named_barriers.values(), *ctx.program.find(Barrier)):
        users = {
            site.call.op
            for site in ctx.sites
            for e in site.call.args
            if isinstance(e, ResourceRef) and e.name == barrier.name
        }
        waited, signalled = bool(users & _WAITS), bool(users - {"barrier_wait", "expect_tx"})
        if not users or waited != signalled:
            what = "used" if not users else "waited for" if signalled else "signalled"
            yield RULE.at(
                barrier.loc,
                f"barrier {barrier.name} is never {what}",
                facts={"barrier": barrier.name},
                helps=("write the other side, or remove the barrier",),
            )


RULE = rule(
    code="CK335",
    name="barrier-one-sided",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
