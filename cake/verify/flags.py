"""Data that CTAs hand to one another by way of a flag or a counter in global memory.

The giver stores data, gathers the threads that stored, releases, and changes the flag; the taker
sees the flag changed, acquires, and loads the data. (PTX ISA, "Memory Consistency Model", release
and acquire patterns.) That the flag tells of the right stores is not asked here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cake.ir.nodes import RoleBody, Stmt
from cake.ops.base import SyncEffect, static
from cake.verify.context import Context, once
from cake.verify.disjoint import ctas_and_tiles
from cake.verify.flow import Flow
from cake.verify.footprints import Footprint, footprints
from cake.verify.influence import Influence
from cake.verify.memory_items import ROLE, UNIT, per_call
from cake.verify.polls import polls
from cake.verify.sites import Site, controls

Lack = Literal["gather", "release", "acquire"]
_WIDE = frozenset({None, "gpu", "sys"})
"""Scopes that contain all CTAs of a grid; a tensor's atomics have one of them by default."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What lacks between ``first`` and ``second``: a store of data and the change of a flag, or the
    reading of a flag and a load of data."""

    lack: Lack
    first: Site
    second: Site
    data: str
    flag: str


@dataclass(frozen=True, slots=True)
class _Store:
    """A store of data: the widest barrier since, and whether it was released."""

    site: Site
    reach: int = 0
    fenced: bool = False


@dataclass(slots=True)
class _Order:
    """Stores of data so far, and flags read without an acquire since."""

    stores: frozenset[_Store] = frozenset()
    seen: frozenset[tuple[str, Site]] = frozenset()

    def copy(self) -> _Order:
        return replace(self)

    def join(self, other: _Order) -> None:
        self.stores |= other.stores
        self.seen |= other.seen


@once
def broken(ctx: Context) -> tuple[Broken, ...]:
    """Every gap in a hand-over between CTAs."""
    flags = _flags(ctx)
    flows = [_FlagFlow(ctx, role, flags) for role in ctx.program.roles] if flags else []
    return tuple(gap for flow in flows for gap in flow.found.values())


def _flags(ctx: Context) -> dict[str, frozenset[str]]:
    """For each tensor whose loads may see what other CTAs stored, the flags that they wait for."""
    accessed = footprints(ctx)
    updated = {f.place.tensor for f in accessed if f.access.action == "atomic"}
    written = {f.place.tensor for f in accessed if f.access.action != "read"}
    ordered = {f.place.tensor for f in accessed if _order(f.site) is not None}
    loaded = [f for f in accessed if f.access.action == "read" and f.place.tensor in written]
    if not loaded or not (updated | ordered) & written:
        return {}
    influence = Influence(ctx)
    polled: dict[str, set[str]] = {}
    for poll in polls(ctx):
        polled.setdefault(poll.site.role.role, set()).add(poll.place.tensor)
    found: dict[str, frozenset[str]] = {}
    for f in loaded:
        role, tensor = f.site.role.role, f.place.tensor
        if _own(ctx, f, accessed, influence):
            continue
        guards = {t for c, _ in f.site.conditions for t in influence.tensors(c, role)}
        waited = (guards | polled.get(role, set())) & (updated | ordered) & written - {tensor}
        found[tensor] = found.get(tensor, frozenset()) | waited
    return {data: waited for data, waited in found.items() if waited}


def _own(ctx: Context, f: Footprint, accessed: tuple[Footprint, ...], influence: Influence) -> bool:
    """Whether a load reads what its own CTA has stored: along some axis all stores have its index,
    and that is the CTA's own, of its tile or of a ticket that it drew."""
    text, keys = ctx.integers.text, ctas_and_tiles(ctx, f)
    drawn = {g.place.tensor for g in accessed if g.access.action == "atomic"}
    same = [g for g in accessed if g.access.action != "read" and g.place.tensor == f.place.tensor]
    for axis, index in enumerate(f.place.index):
        p = ctx.integers.poly(index)
        own = p is not None and not p.atoms.isdisjoint(keys)
        ticket = drawn & influence.tensors(index, f.site.role.role)
        if (own or ticket) and all(text(g.place.index[axis]) == text(index) for g in same):
            return True
    return False


def _order(site: Site) -> str | None:
    """The memory order that a call names, if it takes one."""
    named = any(p.name == "order" for p in site.primitive.params)
    return static(site.call, "order") if named else None


class _FlagFlow(Flow[_Order]):
    """Follows one role; ``flags`` are those of each tensor of data."""

    def __init__(self, ctx: Context, role: RoleBody, flags: dict[str, frozenset[str]]) -> None:
        super().__init__(ctx.integers)
        self.found: dict[tuple[Site, str], Broken] = {}
        self._ctx, self._flags = ctx, flags
        self._of_flags = frozenset(f for waited in flags.values() for f in waited)
        self._sites = ctx.sites_of(role)
        self._of_stmt = per_call(self._sites)
        self._places = {id(f.site): f for f in footprints(ctx)}
        self.run(role.body, _Order())

    def statement(self, s: Stmt, state: _Order) -> None:
        for i in self._of_stmt.get(id(s), ()):
            site = self._sites[i]
            for effect in site.effects:
                if isinstance(effect, SyncEffect):
                    self._sync(effect, site, state)
            if id(site) in self._places:
                self._access(self._places[id(site)], site, state)

    def _sync(self, effect: SyncEffect, site: Site, state: _Order) -> None:
        if effect == SyncEffect("fence", "memory") and static(site.call, "scope") in _WIDE:
            under = self._ctx.partial(site)
            state.seen = frozenset()
            state.stores = frozenset(
                replace(x, fenced=x.fenced or x.reach > 0 or under <= self._under(x.site))
                for x in state.stores
            )
        elif effect.action in ("barrier", "wait"):
            reach = UNIT if effect.what == "unit" else ROLE
            state.stores = frozenset(replace(x, reach=max(x.reach, reach)) for x in state.stores)

    def _access(self, f: Footprint, site: Site, state: _Order) -> None:
        tensor, order = f.place.tensor, _order(site)
        if tensor in self._of_flags and f.access.action != "read":
            self._change(tensor, site, state)
        if tensor in self._of_flags and f.access.action != "write":
            state.seen = frozenset(x for x in state.seen if x[0] != tensor)
            if order not in ("acquire", "acq_rel"):
                state.seen |= {(tensor, site)}
        if tensor in self._flags and f.access.action == "read":
            for flag, read in state.seen:
                if flag in self._flags[tensor]:
                    self._add("acquire", read, site, tensor, flag)
        if tensor in self._flags and f.access.action != "read":
            state.stores |= {_Store(site)}

    def _change(self, flag: str, site: Site, state: _Order) -> None:
        """A flag changes: what is stored before it must be gathered and released."""
        wide = not any(p.name == "scope" for p in site.primitive.params)
        wide = wide or static(site.call, "scope") in _WIDE
        releases = _order(site) in ("release", "acq_rel") and wide
        for x in state.stores:
            data = self._places[id(x.site)].place.tensor
            if flag not in self._flags[data]:
                continue
            if not self._under(site) <= self._under(x.site) and x.reach < self._needed(site):
                self._add("gather", x.site, site, data, flag)
            elif not releases and not x.fenced:
                self._add("release", x.site, site, data, flag)

    def _under(self, site: Site) -> frozenset[str]:
        """The conditions that only some threads of the role meet, a mask included."""
        mask = self._ctx.mask_of(site)
        own = () if mask is None else (self._ctx.integers.text(mask),)
        return self._ctx.partial(site) | frozenset(own)

    def _needed(self, site: Site) -> int:
        """The reach of a barrier that gathers everybody for whom a call speaks."""
        differing = self._ctx.across_units(site.role.role)
        mask = self._ctx.mask_of(site)
        heads = [e for a in site.around for e in controls(a.stmt)]
        some = any(differing.differs(e) for e in (*heads, *(() if mask is None else (mask,))))
        return ROLE if some else UNIT

    def _add(self, lack: Lack, first: Site, second: Site, data: str, flag: str) -> None:
        self.found.setdefault((second, lack), Broken(lack, first, second, data, flag))
