"""Units write different values to the same bytes of shared memory.

**Rule.** When all units of a role execute a store or copy, each writes bytes of its own, or all
write the same values.

**If broken.** The unit that happens to be last wins.

**Instead.** Use the unit's index in the offsets, `X[u * 16 : u * 16 + 16]`, or let one unit
write.

**Source.** PTX ISA, Memory Consistency Model: races; compute-sanitizer, racecheck.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.verify.context import Context
from cake.verify.rule import rule
from cake.verify.sites import controls

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (32,))
    r = role(warps=4)
    with r as u:
        store(X[lane()], load(x[u * 32 + lane()]))  # CK339
        role_sync()
        store(y[u * 32 + lane()], load(X[31 - lane()]))
"""

GOOD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 128], y: Tensor[f32, 128]):
    X = smem(f32, (128,))
    r = role(warps=4)
    with r as u:
        store(X[u * 32 + lane()], load(x[u * 32 + lane()]))
        role_sync()
        store(y[u * 32 + lane()], load(X[127 - u * 32 - lane()]))
"""


def check(ctx: Context) -> Iterator[Diagnostic]:
    for h in ctx.hazards_of("units-collide"):
        site = h.site
        if site is None:
            continue
        differing = ctx.across_units(site.role.role)
        chosen = any(differing.differs(e) for a in site.around for e in controls(a.stmt))
        mask = ctx.mask_of(site)
        chosen = chosen or (mask is not None and differing.differs(mask))
        if not chosen and any(a is not None and differing.differs(a) for a in site.call.args):
            units = ctx.roles[site.role.role].units
            yield RULE.at(
                site.call.loc,
                f"all {units} units of {site.role.role} write the same bytes of {h.subject}, with"
                " values of their own",
                facts={"buffer": h.subject, "role": site.role.role, "units": units},
                helps=("give each unit its own part", "or let one unit write: if u == 0"),
            )


RULE = rule(
    code="CK339",
    name="colliding-writes",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
