"""Tensor memory is not given back exactly as it was taken.

**Rule.** One warp allocates the tiles and frees them before the CTA ends, on every path; nothing is
allocated again before it is freed, and no other role frees it.

**If broken.** The columns stay taken when the CTA is gone: the next CTA of the SM waits for them
for ever.

**Instead.** `tmem_alloc` at the beginning, `tmem_free` at the end of the same role, both without a
condition.

**Source.** PTX ISA, tcgen05.dealloc; triton-lang/triton#7994; NVIDIA/cutlass#2835.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import RoleBody
from cake.verify.context import Context
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import controls
from cake.verify.tensor_memory import Deed, HeldFlow, all_deeds, owners

BAD = """
@cake.schedule(target="sm_100a")
def kernel(y: Tensor[f32, 32]):
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    math = role(warps=1)
    with math:
        tmem_alloc(T, word[0])  # CK391
        store(y[lane()], 1.0)
"""

GOOD = """
@cake.schedule(target="sm_100a")
def kernel(y: Tensor[f32, 32]):
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    math = role(warps=1)
    with math:
        tmem_alloc(T, word[0])
        store(y[lane()], 1.0)
        tmem_free(T)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    found = all_deeds(ctx)
    owned = owners(found)
    first: dict[str, Deed] = {}
    for deed in found:
        if deed.action == "allocate":
            first.setdefault(deed.tiles, deed)
    for deed in found:
        owner = owned.get(deed.tiles, ())
        if deed.action == "allocate" and deed.site.role.role != owner[0]:
            yield _report(deed, f"role {owner[0]} allocates them too")
        if deed.action == "free" and owner and deed.site.role.role not in owner:
            yield _report(deed, f"role {owner[0]} allocated them and has to free them")
    for role in ctx.program.roles:
        yield from _in_role(ctx, role, first)


def _in_role(
    ctx: Context, role: RoleBody, first: dict[str, Deed]
) -> Iterator[Diagnostic | Uncovered]:
    flow = HeldFlow(ctx, role)
    for deed, states in flow.before.items():
        if deed.action != "allocate":
            continue
        units = ctx.roles[role.role].units
        if units > 1 and not _by_one_unit(ctx, deed):
            yield _report(deed, f"each of {units} warps allocates them")
        elif states == {"held"}:
            yield _report(deed, "they are not freed since the last time")
        elif "held" in states:
            yield Uncovered(f"whether {deed.tiles} are freed before they are allocated again")
    for tiles, states in flow.end.states.items():
        made = first.get(tiles)
        if made is None or made.site.role is not role or "held" not in states:
            continue
        if states != {"held"} and made.site.conditions:
            yield Uncovered(f"whether {tiles} are freed whenever they were allocated")
        else:
            path = "" if states == {"held"} else " on every path"
            yield _report(made, f"nothing frees them{path} before the role ends")


def _by_one_unit(ctx: Context, deed: Deed) -> bool:
    differing = ctx.across_units(deed.site.role.role)
    return any(differing.differs(e) for a in deed.site.around for e in controls(a.stmt))


def _report(deed: Deed, why: str) -> Diagnostic:
    return RULE.at(
        deed.site.call.loc,
        f"the tiles {deed.tiles}: {why}",
        facts={"tiles": deed.tiles},
        helps=("let one warp allocate them once, and free them once at the end",),
    )


RULE = rule(
    code="CK391",
    name="tmem-lifetime",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
