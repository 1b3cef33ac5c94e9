"""A collective primitive stands where threads of the unit may take different paths.

**Rule.** Matrix instructions, barriers, shuffles, TMA and other collective primitives are
executed by all threads of a unit together. Conditions and loop bounds around them are the same in
all threads.

**If broken.** Undefined: a hang, or garbage from absent lanes. ptxas says nothing.

**Instead.** Move the primitive out of the condition; make the condition uniform with a vote or a
reduction; use `mask=` where the primitive has one.

**Source.** PTX ISA, `.sync.aligned` of mma, ldmatrix, wgmma; barrier; shfl.sync.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import varying_condition

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    r = role(warps=1)
    with r:
        total = 0.0
        if lane() < 16:
            total = warp_sum(load(x[lane()]))  # CK330
        store(y[lane()], total)
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    r = role(warps=1)
    with r:
        mine = 0.0
        if lane() < 16:
            mine = load(x[lane()])
        total = warp_sum(mine)
        store(y[lane()], total)
"""

_RING = frozenset({"acquire", "commit", "wait", "release"})


def check(ctx: Context) -> Iterator[Diagnostic]:
    for site in ctx.sites:
        if not site.primitive.convergent or site.call.op in _RING:
            continue
        cause = varying_condition(site.around)
        if cause is not None:
            yield RULE.at(
                site.call.loc,
                f"{site.call.op} needs all threads of the unit, but control flow differs between"
                f" threads here (line {cause.loc.line})",
                related=[(cause.loc, "threads part here")],
                facts={"primitive": site.call.op, "role": site.role.role},
                helps=("move it out of the condition, or make the condition uniform",),
            )


RULE = rule(
    code="CK330",
    name="convergent-divergent",
    gate="hardware conformance",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
