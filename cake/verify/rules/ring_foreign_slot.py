"""A buffer is indexed by the slot of a ring that has more stages than the buffer.

**Rule.** The slot of a ring numbers its stages. A buffer outside the ring may follow it only if it
has at least as many stages.

**If broken.** The access lands behind the buffer, in whatever lies there.

**Instead.** Give the buffer the ring's stages, or make it part of the ring.

**Source.** PTX ISA, shared state space.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.program import Smem
from cake.ir.types import Slot
from cake.verify.context import Context
from cake.verify.memory_items import views
from cake.verify.rule import rule

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=4)
    T = smem(f32, (32,), stages=2)
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
                store(T[s][lane()], load(X[s][lane()]))  # CK418
                unit_sync()
                store(y[m, lane()], load(T[s][31 - lane()]))  # CK418
                unit_sync()
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=4)
    T = smem(f32, (32,), stages=4)
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
                store(T[s][lane()], load(X[s][lane()]))
                unit_sync()
                store(y[m, lane()], load(T[s][31 - lane()]))
                unit_sync()
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for site in ctx.sites:
        for _, view in views(site):
            buffer = ctx.program.resource(view.base)
            if not isinstance(buffer, Smem) or view.stage is None:
                continue
            if not isinstance(view.stage.type, Slot):
                continue
            ring, _ = ctx.rings[view.stage.type.pipeline]
            stages = buffer.stages or 1
            if stages < ring.stages:
                yield RULE.at(
                    view.loc,
                    f"{buffer.name} has {stages} stages and is indexed by a slot of ring"
                    f" {ring.name}, which has {ring.stages}",
                    facts={"ring": ring.name, "stages": stages, "ring_stages": ring.stages},
                    helps=(f"declare {buffer.name} with stages={ring.stages}",),
                )


RULE = rule(
    code="CK418",
    name="ring-foreign-slot",
    gate="program safety",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
