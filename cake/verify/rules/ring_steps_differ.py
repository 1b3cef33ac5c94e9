"""Producer and consumer take different numbers of steps of a ring.

**Rule.** For all sizes, on all paths, a ring is filled as often as it is used. Loop bounds and
conditions are compared after normalisation, so `range(K // 64)` on one side and a peeled first step
with `range(1, K // 64)` on the other are equal if K is at least 64.

**If broken.** One side waits for ever; in a persistent kernel the other tile's data may come first.
The difference often shows only for empty tiles or other rare sizes.

**Instead.** Use the same bounds and conditions in both roles.

**Source.** Dao-AILab/flash-attention#2258; NVIDIA/cutlass#2835; intel/sycl-tla#830.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.ring_steps import compare, takes_none
from cake.verify.rule import Uncovered, rule

BAD = """
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
        for m in range(M // 2):
            with xs.use() as s:  # CK401
                store(y[m, lane()], load(X[s][lane()]) + 1.0)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M > 0)
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder:
        with xs.use() as s:
            store(y[0, lane()], load(X[s][lane()]))
        for m in range(1, M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]) + 1.0)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for ring in ctx.countable():
        producer, consumer = ctx.body(ring.producer), ctx.body(ring.consumer)
        one_sided = takes_none(ctx, producer, ring.name, "acquire")
        if one_sided or takes_none(ctx, consumer, ring.name, "wait"):
            continue
        sides = (producer, ring.name, "acquire"), (consumer, ring.name, "wait")
        result = compare(ctx, *sides)  # type: ignore[arg-type]
        if result.proved:
            continue
        if result.sample is None:
            yield Uncovered(f"whether ring {ring.name} is filled as often as it is used")
            continue
        fills, uses = ctx.ring_places(ring.name)
        yield RULE.at(
            uses[0].loc,
            f"for {result.sample} ring {ring.name} is filled {result.first} times and used"
            f" {result.second} times",
            related=[(fills[0].loc, f"{ring.producer} fills here")],
            facts={
                "ring": ring.name,
                "fills": result.first,
                "uses": result.second,
                **result.sample.sizes,
            },
            helps=("use the same loop bounds and conditions in both roles",),
        )


RULE = rule(
    code="CK401",
    name="ring-steps-differ",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
