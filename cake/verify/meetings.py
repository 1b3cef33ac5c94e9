"""Barriers of the whole CTA and of the cluster: how often a role has come by, before each call.

A role's n-th visit to such a barrier meets the n-th visit of every other role. So a call of one
role comes before a call of another one if, for some n, it precedes the arrival at visit n and the
other follows the wait of visit n.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from cake.ir.nodes import RoleBody, Stmt
from cake.ops.base import SyncEffect
from cake.verify.context import Context
from cake.verify.flow import Flow, Loop
from cake.verify.memory_items import per_call
from cake.verify.sites import Site

REACHES = ("cta", "cluster")
_ARRIVES = frozenset({"barrier", "arrive"})
_WAITS = frozenset({"barrier", "wait"})

Range = tuple[float, float]
"""Least and most; infinity where a loop may add any number."""


@dataclass(slots=True)
class Visits:
    """Arrivals at and waits for each barrier so far."""

    arrived: dict[str, Range] = field(default_factory=lambda: dict.fromkeys(REACHES, (0, 0)))
    waited: dict[str, Range] = field(default_factory=lambda: dict.fromkeys(REACHES, (0, 0)))

    def copy(self) -> Visits:
        return Visits(dict(self.arrived), dict(self.waited))

    def join(self, other: Visits) -> None:
        for mine, theirs in ((self.arrived, other.arrived), (self.waited, other.waited)):
            for reach in REACHES:
                (a, b), (c, d) = mine[reach], theirs[reach]
                mine[reach] = (min(a, c), max(b, d))

    def widen(self, end: Visits) -> None:
        """Take up the end of a round: what grows in a round grows without limit."""
        for mine, theirs in ((self.arrived, end.arrived), (self.waited, end.waited)):
            for reach in REACHES:
                low, high = mine[reach]
                mine[reach] = (low, math.inf if theirs[reach][1] > high else high)

    def precedes(self, later: Visits, reaches: Collection[str] = REACHES) -> bool:
        """Whether a barrier surely lies between a place here and a place of another role there."""
        return any(self.arrived[r][1] < later.waited[r][0] for r in reaches)

    def may_meet(self, wait: Visits, reach: str) -> bool:
        """Whether an arrival made here and a wait that begins there may be of one visit."""
        (a, b), (c, d) = self.arrived[reach], wait.waited[reach]
        return a <= d and c <= b


class Meetings(Flow[Visits]):
    """Follows one role. ``before`` holds the visits made before each call, by its identity."""

    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.before: dict[int, Visits] = {}
        self._sites = ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        self.run(role.body, Visits())

    def statement(self, s: Stmt, state: Visits) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self._sites[i]
            known = self.before.setdefault(id(site.call), state.copy())
            known.join(state)
            for effect in _of_all(site):
                if effect.action in _ARRIVES:
                    low, high = state.arrived[effect.what]
                    state.arrived[effect.what] = (low + 1, high + 1)
                if effect.action in _WAITS:
                    low, high = state.waited[effect.what]
                    state.waited[effect.what] = (low + 1, high + 1)

    def join_round(self, s: Loop, head: Visits, end: Visits) -> None:
        head.widen(end)


def _of_all(site: Site) -> Iterator[SyncEffect]:
    for effect in site.effects:
        if isinstance(effect, SyncEffect) and effect.what in REACHES:
            yield effect


def meetings(ctx: Context) -> dict[int, Visits]:
    """The visits made before each call of the program, by the call's identity."""
    found: dict[int, Visits] = {}
    for role in ctx.program.roles:
        found |= Meetings(ctx, role).before
    return found
