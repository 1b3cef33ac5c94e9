"""A barrier of several units stands where only some units come by.

**Rule.** `role_sync`, `cta_sync` and `cluster_sync` are reached by every unit of the role equally
often: conditions and loop bounds around them do not depend on the unit.

**If broken.** The units that came wait for the others for ever.

**Instead.** Move the barrier out of the condition, or use a named barrier for the units that meet.

**Source.** PTX ISA, barrier; facebookexperimental/triton#61.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.base import SyncEffect
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import controls, varying_condition

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        if u > 0:
            role_sync()  # CK331
        unit_sync()
        store(y[i], load(X[i]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        i = u * 32 + lane()
        store(X[i], load(x[i]))
        role_sync()
        if u > 0:
            store(y[i], load(X[127 - i]))
"""

_WIDE = tuple(SyncEffect("barrier", reach) for reach in ("role", "cta", "cluster"))


def check(ctx: Context) -> Iterator[Diagnostic]:
    for site in ctx.sites:
        if not any(e in _WIDE for e in site.effects) or varying_condition(site.around):
            continue
        differing = ctx.across_units(site.role.role)
        for a in site.around:
            if any(differing.differs(e) for e in controls(a.stmt)):
                yield RULE.at(
                    site.call.loc,
                    f"{site.call.op} waits for all units, but the condition in line"
                    f" {a.stmt.loc.line} differs between units",
                    related=[(a.stmt.loc, "units part here")],
                    facts={"primitive": site.call.op, "role": site.role.role},
                    helps=("move it out of the condition", "or use a named barrier"),
                )
                break


RULE = rule(
    code="CK331",
    name="barrier-units-differ",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
