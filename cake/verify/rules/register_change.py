"""`setmaxnreg` changes a warpgroup's registers in the wrong direction, or to what nobody gives up.

**Rule.** `setmaxnreg("dec", n)` stands where each thread has at least n registers, `("inc", n)`
where it has at most n: those of `role(regs=...)` or of the entry, or of the last `setmaxnreg`
before. And a raise fits into what the other warpgroups leave at their lowest.

**If broken.** The first is undefined, and ptxas says nothing; the second hangs.

**Instead.** Lower the warpgroups that copy first; raise those that compute by what that frees.

**Source.** PTX ISA, setmaxnreg.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from cake.diag import Diagnostic
from cake.ir.nodes import RoleBody, Stmt
from cake.ir.types import WARP
from cake.ops.base import SyncEffect, static
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.memory_items import per_call
from cake.verify.rule import rule
from cake.verify.sites import Site

BAD = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    idle = role(warpgroups=1)
    math = role(warpgroups=1)
    with idle:
        setmaxnreg("dec", 24)
    with math:
        setmaxnreg("inc", 64)  # CK306
        store(y[n * 128 + thread()], 1.0, mask=n * 128 + thread() < N)
"""

GOOD = BAD.replace('"inc", 64)  # CK306', '"inc", 256)')

_CHANGE = SyncEffect("wait", "registers")


@dataclass(slots=True)
class _Counts:
    """The registers that each thread may have."""

    now: frozenset[int]

    def copy(self) -> "_Counts":
        return _Counts(self.now)

    def join(self, other: "_Counts") -> None:
        self.now |= other.now


class _Changes(Flow[_Counts]):
    """Follows one role: what may be the case ``before`` each change, and the ``least`` of all."""

    def __init__(self, ctx: Context, role: RoleBody, entry: int) -> None:
        super().__init__(ctx.integers)
        self.before: dict[Site, frozenset[int]] = {}
        self.least, self._sites = entry, ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        self.run(role.body, _Counts(frozenset({entry})))

    def statement(self, s: Stmt, state: _Counts) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self._sites[i]
            if _CHANGE in site.effects:
                self.before[site] = self.before.get(site, frozenset()) | state.now
                state.now = frozenset({static(site.call, "count")})
                self.least = min(self.least, *state.now)


def check(ctx: Context) -> Iterator[Diagnostic]:
    if not any(_CHANGE in site.effects for site in ctx.sites):
        return
    plan, lowest = ctx.plan, {}
    for number, group in enumerate(plan.groups):
        entry = plan.entry_regs if group.regs is None else group.regs
        changes = [_Changes(ctx, ctx.body(p.role.name), entry) for p in group.places]
        lowest[number] = min((c.least for c in changes), default=entry) * group.warps * WARP
        for change in changes:
            for site, counts in change.before.items():
                yield from _direction(site, counts)
    pool = plan.entry_regs * plan.threads
    for number, group in enumerate(plan.groups):
        left = pool - sum(n for other, n in lowest.items() if other != number)
        for place in group.places:
            for site in ctx.sites_of(ctx.body(place.role.name)):
                yield from _room(site, group.warps * WARP, left)


def _direction(site: Site, counts: frozenset[int]) -> Iterator[Diagnostic]:
    action, count = static(site.call, "action"), static(site.call, "count")
    wrong = {n for n in counts if (n > count if action == "inc" else n < count)}
    if wrong:
        has = max(wrong) if action == "inc" else min(wrong)
        yield RULE.at(
            site.call.loc,
            f'setmaxnreg("{action}", {count}) stands where each thread has {has} registers',
            facts={"count": count, "has": has},
            helps=(f"ask for {'at least' if action == 'inc' else 'at most'} {has}",),
        )


def _room(site: Site, threads: int, left: int) -> Iterator[Diagnostic]:
    if _CHANGE not in site.effects or static(site.call, "action") != "inc":
        return
    wanted = static(site.call, "count") * threads
    if wanted > left:
        yield RULE.at(
            site.call.loc,
            f"this waits for {wanted} registers, the other warpgroups leave {left} at their lowest",
            facts={"wanted": wanted, "left": left},
            helps=(f"raise to {left // threads // 8 * 8} at most, or lower the others further",),
        )


RULE = rule(
    code="CK306",
    name="register-change",
    gate="schedule semantics",
    page=__doc__,
    check=check,
    bad=BAD,
    good=GOOD,
)
