"""A ring is used where threads of the unit may take different paths.

**Rule.** Taking and handing over a slot is done by all threads of a unit together: enclosing
conditions and loop bounds are the same in all of them.

**If broken.** Some lanes wait for a barrier that the others have left; arrivals are lost or
doubled.

**Instead.** Take the slot outside, and put only the per-thread work under the condition.

**Source.** PTX ISA, mbarrier.try_wait; NVIDIA/TIRx-kernels#21.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule

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
        for m in range(M):
            if lane() < 32:
                with xs.use() as s:  # CK410
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
                if lane() < 16:
                    store(y[m, lane()], load(X[s][lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for step in ctx.divided:
        if not step.units:
            yield RULE.at(
                step.place.loc,
                f"this step of ring {step.ring} stands under control flow that differs between"
                f" threads (line {step.cause.loc.line})",
                related=[(step.cause.loc, "threads part here")],
                facts={"ring": step.ring, "role": step.role},
                helps=("take the slot outside the condition",),
            )


RULE = rule(
    code="CK410",
    name="ring-divergent",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
