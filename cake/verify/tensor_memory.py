"""Tensor memory: what a call does with tiles of it, and which of them a role holds where."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from cake.ir.nodes import If, ResourceRef, RoleBody, Stmt, View, walk_stmts
from cake.ir.program import Tmem
from cake.ops.base import SyncEffect
from cake.verify.context import Context
from cake.verify.flow import Flow
from cake.verify.memory_items import per_call
from cake.verify.sites import Site, controls

Action = Literal["allocate", "free", "load", "product"]
Holding = Literal["never", "held", "freed"]
_LIFETIME: dict[SyncEffect, Action] = {
    SyncEffect("wait", "tmem"): "allocate",
    SyncEffect("arrive", "tmem"): "free",
}


@dataclass(frozen=True, slots=True)
class Deed:
    """What a call does with the tiles of one declaration."""

    action: Action
    tiles: str
    site: Site

    @property
    def uses(self) -> bool:
        """Whether elements are read or written."""
        return self.action in ("load", "product")


def deeds(site: Site) -> Iterator[Deed]:
    """What a call does with tensor memory."""
    for effect in site.effects:
        action = _LIFETIME.get(effect) if isinstance(effect, SyncEffect) else None
        ref = site.call.args[0] if site.call.args else None
        if action is not None and isinstance(ref, ResourceRef):
            yield Deed(action, ref.name, site)
    touched: dict[str, Action] = {}
    for access, place in site.accesses("tmem"):
        if isinstance(place, View) and touched.get(place.base) != "product":
            touched[place.base] = "load" if access.action == "read" else "product"
    for tiles, action in touched.items():
        yield Deed(action, tiles, site)


def all_deeds(ctx: Context) -> tuple[Deed, ...]:
    """What the program does with tensor memory, in source order."""
    return tuple(d for site in ctx.sites for d in deeds(site)) if ctx.program.find(Tmem) else ()


def declared(ctx: Context, tiles: str) -> Tmem:
    """The declaration of tiles."""
    found = ctx.program.resource(tiles)
    assert isinstance(found, Tmem)
    return found


@dataclass(slots=True)
class Held:
    """For each declaration, what may be the case."""

    states: dict[str, frozenset[Holding]] = field(default_factory=dict)

    def copy(self) -> Held:
        return Held(dict(self.states))

    def join(self, other: Held) -> None:
        self.states = {t: s | other.states[t] for t, s in self.states.items()}


class HeldFlow(Flow[Held]):
    """Follows one role: ``before`` each deed of it, and at its ``end``. ``others`` are the tiles
    that the role may hold already where it allocates.

    What one unit of several does is done for the role.
    """

    def __init__(self, ctx: Context, role: RoleBody) -> None:
        super().__init__(ctx.integers)
        self.before: dict[Deed, frozenset[Holding]] = {}
        self.others: dict[Deed, frozenset[str]] = {}
        self._differing = ctx.across_units(role.role)
        self._sites = ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        start: frozenset[Holding] = frozenset({"never"})
        tiles = ctx.program.find(Tmem)
        self.end = self.run(role.body, Held({t.name: start for t in tiles}))

    def statement(self, s: Stmt, state: Held) -> None:
        for i in self._of_stmt.get(id(s), ()):
            for deed in deeds(self._sites[i]):
                now = state.states[deed.tiles]
                self.before[deed] = self.before.get(deed, frozenset()) | now
                if deed.action == "allocate":
                    held = {t for t, states in state.states.items() if "held" in states}
                    self.others[deed] = self.others.get(deed, frozenset()) | held - {deed.tiles}
                if not deed.uses:
                    after: Holding = "held" if deed.action == "allocate" else "freed"
                    state.states[deed.tiles] = frozenset({after})

    def join_branches(self, s: If, then: Held, orelse: Held) -> None:
        if not any(self._differing.differs(e) for e in controls(s)):
            then.join(orelse)
            return
        changed = {
            d.tiles
            for inner in walk_stmts(s.then)
            for i in self._of_stmt.get(id(inner), ())
            for d in deeds(self._sites[i])
            if not d.uses
        }
        for tiles in then.states.keys() - changed:
            then.states[tiles] = orelse.states[tiles]


def owners(found: tuple[Deed, ...]) -> dict[str, tuple[str, ...]]:
    """The roles that allocate each declaration."""
    roles: dict[str, dict[str, None]] = {}
    for d in found:
        if d.action == "allocate":
            roles.setdefault(d.tiles, {})[d.site.role.role] = None
    return {tiles: tuple(r) for tiles, r in roles.items()}
