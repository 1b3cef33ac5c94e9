"""Accesses to shared memory, followed until they are settled.

Every access is remembered until nothing later can collide with it: a copy or product in flight
until its group is drained, an ordinary access until a barrier that all who might collide take part
in, a write that the async proxy will read until a fence and a barrier after it. A later access that
meets an unsettled one is a :class:`~cake.verify.memory_items.Hazard`; rules name the hazards.

Stages of a ring are told apart by the place and time of their acquisition; stages computed by hand
by their index modulo the number of stages, relative to the variables of the enclosing loops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from cake.ir.nodes import Assign, Block, Bracket, Call, RoleBody, Stmt, VarRef, View
from cake.ir.program import NamedBarrier, Pipeline, Program, Role
from cake.ir.types import Slot
from cake.ops.base import Access, SyncEffect, pending
from cake.ops.rings import RingFacts, ring_step
from cake.verify.flow import Flow, Loop
from cake.verify.integers import Integers
from cake.verify.loop_frames import LoopFrames
from cake.verify.memory_items import (
    OLDEST,
    ROLE,
    SOME,
    UNIT,
    Hazard,
    HazardKind,
    Item,
    Memory,
    by_each_thread,
    danger,
    is_masked,
    local_view,
    own_key,
    per_call,
    views,
)
from cake.verify.regions import Overlap, Regions, SlotId
from cake.verify.sites import Site
from cake.verify.stage_blocks import StageBlocks


class MemoryFlow(Flow[Memory]):
    """Follows one role. ``hazards`` are in the order in which they were first met.

    ``asynchronous`` names the buffers that the role accesses through the async proxy,
    ``handed_over`` those that other roles read through it, ``aliases`` those that share bytes.
    ``partial`` holds, for each call, the conditions round it that only some threads meet.
    """

    def __init__(
        self,
        program: Program,
        integers: Integers,
        role: RoleBody,
        sites: tuple[Site, ...],
        rings: dict[str, tuple[Pipeline, RingFacts]],
        handed_over: frozenset[str],
        aliases: Mapping[str, frozenset[str]],
    ) -> None:
        super().__init__(integers)
        self.handed_over = handed_over
        self.aliases = aliases
        self.program = program
        self.role = role
        self.rings = rings
        self.sites = sites
        decl = program.resource(role.role)
        assert isinstance(decl, Role)
        self.threads = decl.warps * 32
        self.units = decl.units
        self.hazards: dict[Hazard, None] = {}
        self.asynchronous = frozenset(
            view.base for site in sites for access, view in views(site) if access.proxy == "async"
        )
        self.partial: tuple[frozenset[str], ...] = (frozenset(),) * len(sites)
        self._of_stmt = per_call(sites)
        blocks = StageBlocks(integers, sites)
        self._frames = LoopFrames(sites, integers, blocks)
        self._regions = Regions(program, integers, decl, blocks)

    def follow(self) -> tuple[Hazard, ...]:
        """Run the role from start to end."""
        end = self.run(self.role.body, Memory())
        for item in end.items:
            if item.completes == "bulk_group" and not item.drained:
                self._add("store-left", self.role, item)
            handed = item.region.buffer in self.handed_over and item.action == "write"
            if handed and item.proxy == "generic" and not item.fenced:
                self._add("never-fenced", self.role, item)
        return tuple(self.hazards)

    # -- accesses ----------------------------------------------------------------------------------

    def statement(self, s: Stmt, state: Memory) -> None:
        for i in self._of_stmt.get(id(s), ()):
            self._call(i, state)
        if not isinstance(s, Assign) or not isinstance(s.value.type, Slot):
            return
        value, target = s.value, s.targets[0]
        if isinstance(value, Call) and value.op in ("acquire", "wait"):
            self._take(value.type.pipeline, target, value, state)  # type: ignore[attr-defined]
        elif isinstance(value, VarRef) and value.name in state.slots:
            state.slots[target] = state.slots[value.name]
        else:
            state.slots.pop(target, None)

    def _call(self, i: int, state: Memory) -> None:
        site = self.sites[i]
        call = site.call
        if ring_step(call) in ("commit", "release"):
            slot = call.args[1]
            if isinstance(slot, VarRef) and isinstance(slot.type, Slot):
                ids = state.slots.get(slot.name, frozenset())
                self._give(slot.type.pipeline, ids, call, state)
            return
        for effect in site.effects:
            if isinstance(effect, SyncEffect):
                self._sync(effect, i, state)
                continue
            view = local_view(site, effect)
            if view is not None:
                self._access(i, effect, view, state)

    def _access(self, i: int, access: Access, view: View, state: Memory) -> None:
        item = Item(
            index=i,
            action=access.action,
            proxy=access.proxy,
            completes=access.completes,
            region=self._regions.of(view, state.slots),
            own=own_key(self.sites[i], view, self.integers),
            each=by_each_thread(self.sites[i]),
            masked=is_masked(self.sites[i]),
            drained=access.completes == "now",
        )
        self._check(item, state)
        several = self.units > 1 and access.action == "write"
        if several and self._regions.overlap(item.region, item.region, between_units=True) == "yes":
            self._add("units-collide", self.sites[i].call, item, units=True)
        state.items.add(item)

    def _check(self, new: Item, state: Memory) -> None:
        stage = new.region.stage
        if isinstance(stage, frozenset) and stage & state.released:
            self._add("use-after-release", self.sites[new.index].call, new)
        aliases = self.aliases.get(new.region.buffer, frozenset())
        for old in state.items:
            if old.action == "read" and new.action == "read":
                continue
            if old.region.buffer == new.region.buffer:
                self._meet(old, new)
            elif old.region.buffer in aliases and new.action != "read":
                self._meet_alias(old, new)

    def _meet(self, old: Item, new: Item) -> None:
        """Report what may go wrong between an unsettled access and a later one."""
        at = self.sites[new.index].call
        for reach in (UNIT, ROLE) if self.units > 1 else (UNIT,):
            kind = danger(old, new, reach)
            own = reach == UNIT and old.own is not None and old.own == new.own
            if kind is None or (own and kind in ("read-unsynced", "write-unsynced")):
                continue
            found = self._overlap(old, new, reach)
            if found != "no":
                # A barrier of some units has parted the accesses, perhaps of these.
                parted = reach == ROLE and SOME in (old.synced, old.ordered)
                certain = found == "yes" and not parted
                self._add(kind, at, old, certain=certain, units=reach == ROLE)
                return

    def _overlap(self, old: Item, new: Item, reach: int) -> Overlap:
        """Whether two accesses touch the same bytes, in threads that a barrier must part."""
        if reach == UNIT and old.each and new.each:
            found = self._regions.between_threads(old.region, new.region)
            varying = any(o.part.terms for o in (*old.region.offsets, *new.region.offsets))
            partial = varying and (old.masked or new.masked)
            return "maybe" if found == "yes" and partial else found
        return self._regions.overlap(old.region, new.region, between_units=reach == ROLE)

    def _meet_alias(self, old: Item, new: Item) -> None:
        """A write to a buffer that shares bytes with another one, still in use."""
        reach = ROLE if self.units > 1 else UNIT
        kind = danger(old, new, reach)
        if kind in ("write-in-flight", "write-unsynced"):
            certain = self._regions.whole(old.region) and self._regions.whole(new.region)
            self._add(kind, self.sites[new.index].call, old, certain=certain, units=reach == ROLE)

    # -- synchronisation ---------------------------------------------------------------------------

    def _sync(self, effect: SyncEffect, index: int, state: Memory) -> None:
        site = self.sites[index]
        if effect.action == "commit":
            self._each(index, state, lambda x: x.older(effect.what))
        elif effect.action == "drain":
            left = pending(site.call)
            self._each(index, state, lambda x: x.after_drain(effect.what, left))
        elif effect == SyncEffect("fence", "proxy"):
            self._each(index, state, lambda x: replace(x, fenced=True) if x.drained else x)
        elif effect.action == "barrier":
            self._barrier(self._reach(effect, site), state)
        elif effect == SyncEffect("wait", "mbarrier"):
            # Phases of raw mbarriers are not followed: what completes on one is taken to be done.
            state.items = {x for x in state.items if x.completes != "mbarrier"}
            self._barrier(ROLE, state)
        elif effect == SyncEffect("wait", "cluster"):
            self._barrier(ROLE, state)

    def _each(self, index: int, state: Memory, change: Callable[[Item], Item]) -> None:
        """Change what the threads that execute a call have accessed: the call may stand under a
        condition that only some of them meet."""
        under = self.partial[index]
        state.items = {change(x) if under <= self.partial[x.index] else x for x in state.items}

    def _reach(self, effect: SyncEffect, site: Site) -> int:
        if effect.what == "unit":
            return UNIT
        if effect.what == "named":
            barrier = self.program.resource(getattr(site.call.args[0], "name", ""))
            assert isinstance(barrier, NamedBarrier)
            if barrier.threads >= self.threads:
                return ROLE
            return SOME if barrier.threads > self.threads // self.units else UNIT
        return ROLE

    def _barrier(self, reach: int, state: Memory) -> None:
        full = ROLE if self.units > 1 else UNIT
        after = (x.after_barrier(reach) for x in state.items)
        state.items = {x for x in after if not x.settled(full, self.asynchronous)}

    # -- rings -------------------------------------------------------------------------------------

    def enter_bracket(self, s: Bracket, state: Memory) -> None:
        self._take(s.pipeline, s.slot, s, state)

    def leave_bracket(self, s: Bracket, state: Memory) -> None:
        ids = state.slots.pop(s.slot, frozenset())
        self._give(s.pipeline, ids, s, state)

    def _take(self, ring: str, target: str, place: Call | Stmt, state: Memory) -> None:
        """A slot is acquired at ``place``; the one taken there before is one step older now."""

        def aged(slot: SlotId) -> SlotId:
            same = slot[:2] == (ring, id(place))
            return (ring, id(place), min(slot[2] + 1, OLDEST)) if same else slot

        state.slots = {v: frozenset(map(aged, ids)) for v, ids in state.slots.items()}
        state.released = {aged(slot) for slot in state.released}
        state.items = {
            replace(x, region=x.region.at_stage(frozenset(map(aged, x.region.stage))))
            if isinstance(x.region.stage, frozenset)
            else x
            for x in state.items
        }
        state.slots[target] = frozenset({(ring, id(place), 0)})

    def _give(self, ring: str, ids: frozenset[SlotId], at: Call | Stmt, state: Memory) -> None:
        """A slot is committed or released: nothing may be in flight in it any more."""
        pipeline, facts = self.rings[ring]
        refilled = self.role.role == pipeline.consumer and "copy" in facts.fill_kinds
        kept: set[Item] = set()
        for x in state.items:
            if not (isinstance(x.region.stage, frozenset) and x.region.stage & ids):
                kept.add(x)
            elif x.completes == "tcgen05" and isinstance(at, Call) and at.op == "tcgen05_commit":
                continue  # It is the completion of these products that hands the slot back.
            elif x.action == "read" and not x.drained:
                self._add("release-in-flight", at, x)
            elif refilled and x.proxy == "generic" and not x.fenced:
                self._add("release-unfenced", at, x)
        state.items = kept
        state.released |= ids

    def leave_block(self, block: Block, state: Memory) -> None:
        for s in block:
            if isinstance(s, Assign) and isinstance(s.value.type, Slot) and s.declares[0]:
                state.slots.pop(s.targets[0], None)

    # -- loops -------------------------------------------------------------------------------------

    def enter_loop(self, s: Loop, state: Memory) -> None:
        state.items = self._frames.enter(s, state.items)

    def next_round(self, s: Loop, state: Memory) -> None:
        state.items = self._frames.repeat(s, state.items)

    def leave_loop(self, s: Loop, state: Memory) -> None:
        state.items = self._frames.leave(s, state.items)

    def _add(
        self,
        kind: HazardKind,
        at: Call | Stmt,
        item: Item,
        *,
        certain: bool = True,
        units: bool = False,
    ) -> None:
        hazard = Hazard(
            kind=kind,
            at=at,
            site=self.sites[item.index],
            subject=item.region.buffer,
            certain=certain,
            units=units,
            age=item.age,
            completes=item.completes,
            action=item.action,
        )
        self.hazards[hazard] = None
