"""A fill puts nothing into its slot.

**Rule.** Between the start and the end of a fill at least one copy or store writes a buffer of the
ring at the fill's slot.

**If broken.** The consumer is handed a stage with the data of an earlier step, or none.

**Instead.** Write the buffer at stage `s` of `with ring.fill() as s:`.

**Source.** tile-ai/tilelang#2566; NVIDIA CUTLASS, Task Scheduling validation.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M > 0)
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        with xs.fill() as s:
            store(X[s][lane()], load(x[0, lane()]))
        for m in range(1, M):
            with xs.fill() as s:  # CK412
                v = load(x[m, lane()])
    with adder:
        for m in range(M):
            with xs.use() as s:
                store(y[m, lane()], load(X[s][lane()]))
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
                store(y[m, lane()], load(X[s][lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for ring, facts in ctx.rings.values():
        for fill in facts.fills:
            if not fill.kinds and ring.name not in ctx.blamed:
                yield RULE.at(
                    fill.site.loc,
                    f"this fill of ring {ring.name} writes none of {', '.join(ring.buffers)}",
                    facts={"ring": ring.name},
                    helps=("copy or store into a buffer of the ring at the slot",),
                )


RULE = rule(
    code="CK412",
    name="ring-empty-fill",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
