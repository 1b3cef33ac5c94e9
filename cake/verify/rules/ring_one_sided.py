"""A ring is filled and never used, or used and never filled.

**Rule.** The producer of a ring fills it and the consumer uses it.

**If broken.** The side that is there waits for ever: the producer after `stages` fills, the
consumer at once.

**Instead.** Write the other side, or remove the ring.

**Source.** PTX ISA, mbarrier; NVIDIA CUTLASS, Task Scheduling validation.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.ring_steps import takes_none
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)  # CK400
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            store(y[m, lane()], 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        for m in range(M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]) + 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, _ in ctx.rings.values():
        filled = not takes_none(ctx, ctx.body(ring.producer), ring.name, "acquire")
        used = not takes_none(ctx, ctx.body(ring.consumer), ring.name, "wait")
        if filled and used:
            continue
        missing = "filled nor used" if not filled and not used else "used" if filled else "filled"
        verb = "neither" if missing == "filled nor used" else "never"
        yield RULE.at(
            ring.loc,
            f"ring {ring.name} is {verb} {missing}",
            facts={"ring": ring.name, "filled": filled, "used": used},
            helps=(
                f"role {ring.producer} fills it with `with {ring.name}.fill() as s:`,"
                f" role {ring.consumer} uses it with `with {ring.name}.use() as s:`",
            ),
        )


RULE = rule(
    code="CK400",
    name="ring-one-sided",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
