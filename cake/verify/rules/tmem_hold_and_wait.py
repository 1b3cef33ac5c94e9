"""A CTA keeps tensor memory while it waits for more.

**Rule.** Where CTAs share an SM, the columns that all of them hold before an allocation leave room
for that allocation. What one CTA holds at a time is at most what the SM has.

**If broken.** Each of the CTAs holds a part and waits for the rest: they hang. ptxas says nothing.

**Instead.** One allocation: more stages of one declaration. Or fewer CTAs an SM.

**Source.** PTX ISA, tcgen05.alloc, tcgen05.relinquish_alloc_permit.
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ops.tmem import columns
from cake.verify.context import Context
from cake.verify.occupancy import most_resident
from cake.verify.rule import Uncovered, rule
from cake.verify.tensor_memory import Deed, HeldFlow, all_deeds, declared, owners

BAD = """
@cake.schedule(target="sm_100a")
def kernel(y: Tensor[f32, 32]):
    launch(min_blocks=2)
    T = tmem(f32, (128, 256), stages=1)
    U = tmem(f32, (128, 256), stages=1)
    words = smem(u32, (2,))
    math = role(warps=1)
    with math:
        tmem_alloc(T, words[0])
        tmem_alloc(U, words[1])  # CK393
        store(y[lane()], 1.0)
        tmem_free(T)
        tmem_free(U)
"""

GOOD = """
@cake.schedule(target="sm_100a")
def kernel(y: Tensor[f32, 32]):
    launch(min_blocks=2)
    T = tmem(f32, (128, 256), stages=2)
    words = smem(u32, (2,))
    math = role(warps=1)
    with math:
        tmem_alloc(T, words[0])
        store(y[lane()], 1.0)
        tmem_free(T)
"""


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    limits = ctx.target.tmem
    found = all_deeds(ctx)
    if limits is None or not found:
        return
    owned = owners(found)
    for role in ctx.program.roles:
        elsewhere = {tiles for tiles, roles in owned.items() if role.role not in roles}
        for deed, mine in HeldFlow(ctx, role).others.items():
            yield from _allocation(ctx, deed, mine | elsewhere, limits.columns)


def _allocation(
    ctx: Context, deed: Deed, others: frozenset[str], room: int
) -> Iterator[Diagnostic | Uncovered]:
    wanted = columns(declared(ctx, deed.tiles))
    held = sum(columns(declared(ctx, tiles)) for tiles in others)
    sure, most = ctx.plan.min_blocks, max(ctx.plan.min_blocks, most_resident(ctx))
    for ctas in (1, sure, most):
        holders = min(ctas, room // held) if held else 0
        if not held or room - max(1, holders) * held >= wanted:
            continue
        if ctas == most > sure:
            yield Uncovered(
                f"whether CTAs of one SM wait for each other's columns in line"
                f" {deed.site.call.loc.line}"
            )
            return
        yield RULE.at(
            deed.site.call.loc,
            f"{deed.tiles} wants {wanted} columns while {holders} CTAs of an SM hold"
            f" {held} each of its {room}",
            facts={"tiles": deed.tiles, "held": held, "wanted": wanted, "ctas": ctas},
            helps=("allocate everything at once: one declaration with more stages",),
        )
        return


RULE = rule(
    code="CK393",
    name="tmem-hold-and-wait",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
