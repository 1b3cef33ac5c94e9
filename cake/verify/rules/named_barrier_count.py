"""A named barrier counts other threads than those that come by.

**Rule.** `threads=` is 32 times the warps that sync or arrive at the barrier, of all roles
together.

**If broken.** Too high: the waiters hang. Too low: the barrier opens before everyone has come.

**Instead.** Add up both sides: 128 threads that `named_arrive` and 128 that `named_sync` make
256.

**Source.** PTX ISA, barrier; deepseek-ai/FlashMLA#41 (and the mistaken fix #57).
"""

from collections.abc import Iterator

from cake.diag import Diagnostic
from cake.ir.nodes import ResourceRef
from cake.ir.program import NamedBarrier
from cake.verify.concrete import evaluate
from cake.verify.context import Context
from cake.verify.rule import Uncovered, rule
from cake.verify.sites import Site, controls

BAD = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))
    writer = role(warps=1)
    reader = role(warps=1)
    full = named_barrier(threads=32)  # CK333
    with writer:
        store(X[lane()], load(x[lane()]))
        named_arrive(full)
    with reader:
        named_sync(full)
        store(y[lane()], load(X[lane()]))
"""

GOOD = BAD.replace("threads=32)  # CK333", "threads=64)")


def check(ctx: Context) -> Iterator[Diagnostic | Uncovered]:
    for barrier in ctx.named_barriers.values():
        sites = [s for s in ctx.sites if _meets(s, barrier)]
        for slot in range(barrier.slots if sites else 0):
            threads = 0
            for role in ctx.program.roles:
                units = _units(ctx, [s for s in sites if s.role is role], slot)
                if units is None:
                    yield Uncovered(f"which units come to named barrier {barrier.name}")
                    return
                threads += units * ctx.roles[role.role].unit_threads
            if threads != barrier.threads:
                yield RULE.at(
                    barrier.loc,
                    f"{barrier.name} counts {barrier.threads} threads, but {threads} come to it"
                    f"{f' at slot {slot}' if barrier.slots > 1 else ''}",
                    related=[(s.call.loc, f"{s.role.role} comes by here") for s in sites],
                    facts={"threads": barrier.threads, "arriving": threads, "slot": slot},
                    helps=(f"declare threads={threads}, or mend the roles",),
                )


def _meets(site: Site, barrier: NamedBarrier) -> bool:
    ref = site.call.args[0] if site.call.args else None
    named = site.call.op in ("named_sync", "named_arrive")
    return named and isinstance(ref, ResourceRef) and ref.name == barrier.name


def _units(ctx: Context, sites: list[Site], slot: int) -> int | None:
    """How many units of a role come to a slot at one of its sites; None if that is not known."""
    if not sites:
        return 0
    role = sites[0].role
    found = 0
    for u in range(ctx.roles[role.role].units):
        values = {} if role.unit is None else {role.unit: u}
        comes = [_comes(ctx, site, slot, values) for site in sites]
        if None in comes and True not in comes:
            return None
        found += True in comes
    return found


def _comes(ctx: Context, site: Site, slot: int, values: dict[str, int]) -> bool | None:
    """Whether a unit reaches a site with this slot, conditions that all units share aside."""
    differing = ctx.across_units(site.role.role)
    truth: list[bool | None] = []
    for a in site.around:
        for e in controls(a.stmt):
            if differing.differs(e):
                value = evaluate(e, values)
                truth.append(None if value is None else bool(value) == a.branch)
    truth.append(_at(ctx, site, slot, values))
    return False if False in truth else None if None in truth else True


def _at(ctx: Context, site: Site, slot: int, values: dict[str, int]) -> bool | None:
    """Whether a site's slot is this one, or may be at a time that is the same for all units."""
    place = site.call.args[1]
    number = 0 if place is None else evaluate(place, values)
    if number is not None or place is None:
        return number == slot
    if ctx.across_units(site.role.role).differs(place):
        return None
    p = ctx.integers.poly(place)
    low, high = (0, slot) if p is None else ctx.integers.interval(p)
    return low <= slot <= high


RULE = rule(
    code="CK333",
    name="named-barrier-count",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
