"""Units of a role take different numbers of steps of a ring.

**Rule.** All units of the producer fill a ring together, all units of the consumer use it together:
conditions and loop bounds around its steps do not depend on the unit. Barriers count one arrival of
every warp of the role.

**If broken.** The barrier waits for the arrivals of units that went another way: the kernel hangs.

**Instead.** Take the slot in all units and put the unit's own work under the condition; or declare
two roles with a ring each.

**Source.** PTX ISA, mbarrier.init; intel/sycl-tla#830; triton-lang/triton#8285.
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
    adder = role(warps=2)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder as u:
        for m in range(M):
            if u == m % 2:
                with xs.use() as s:  # CK411
                    store(y[m, lane()], load(X[s][lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=2)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
    with adder as u:
        for m in range(M):
            with xs.use() as s:
                if u == m % 2:
                    store(y[m, lane()], load(X[s][lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for step in ctx.divided:
        if step.units:
            yield RULE.at(
                step.place.loc,
                f"this step of ring {step.ring} depends on the unit, through the condition in line"
                f" {step.cause.loc.line}",
                related=[(step.cause.loc, "units part here")],
                facts={"ring": step.ring, "role": step.role},
                helps=("take the slot in every unit, and choose inside",),
            )


RULE = rule(
    code="CK411",
    name="ring-units-differ",
    gate="schedule semantics",
    layer="L1",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
