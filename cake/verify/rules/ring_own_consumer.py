"""One role is both producer and consumer of a ring.

**Rule.** A ring joins two different roles.

**If broken.** The role would wait for itself: as soon as it takes one slot more than there are
stages, nobody is left to hand one over.

**Instead.** Within one role, use stages of a buffer with `cp_async_wait` and a barrier.

**Source.** PTX ISA, mbarrier.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    r = role(warps=1)
    xs = pipeline(X, producer=r, consumer=r)  # CK406
    with r:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]) + 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    r = role(warps=1)
    with r:
        for m in range(M):
            store(X[m % 2][lane()], load(x[m, lane()]))
            unit_sync()
            store(y[m, lane()], load(X[m % 2][31 - lane()]) + 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, _ in ctx.rings.values():
        if ring.producer == ring.consumer:
            yield RULE.at(
                ring.loc,
                f"role {ring.producer} is both producer and consumer of ring {ring.name}",
                facts={"ring": ring.name, "role": ring.producer},
                helps=("use two roles, or stages of a buffer with a barrier",),
            )


RULE = rule(
    code="CK406",
    name="ring-own-consumer",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
