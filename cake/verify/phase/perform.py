"""From a primitive that a unit executes to the events of its actors, by the primitive's effects.

Which thread does what follows the emitter: copies, TMA stores and their groups belong to one thread
of the unit; cp.async, wgmma and ordinary accesses to all of its warps.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import replace
from typing import Any

from cake.ir.nodes import Call, Expr, ResourceRef, TensorRef, VarRef, View
from cake.ir.program import Program, Tmem
from cake.ops import completion
from cake.ops.base import STAYS, SyncEffect, operand, static
from cake.ops.base import Access as Effect
from cake.ops.tiles import view_bytes
from cake.ops.tma_boxes import cluster_parts
from cake.verify.phase import events as ev
from cake.verify.phase.events import Access, Engine, Key, Landing, Region
from cake.verify.phase.outline import Act
from cake.verify.phase.places import Places
from cake.verify.phase.regions import box_cells
from cake.verify.phase.scalars import Compiler
from cake.verify.phase.signals import Signals, product_ranks
from cake.verify.phase.targets import WARPS, Targets
from cake.verify.phase.unit import Beyond, Part, Unit, known, reference
from cake.verify.phase.wiring import Wiring

_QUEUES = frozenset({"cp_async", "bulk_group", "wgmma"})
_ELECTED = frozenset({"bulk_group", "tcgen05"})


class Performer:
    """Lists the events of primitives.

    ``instances`` numbers the statements executed: accesses of one statement do not race.
    ``written`` are the tensors that the program writes.
    """

    def __init__(
        self,
        program: Program,
        compiler: Compiler,
        targets: Targets,
        places: Places,
        wiring: Wiring,
        written: frozenset[str],
    ) -> None:
        self.program = program
        self.compiler = compiler
        self.written = written
        self.targets = targets
        self.places = places
        self.wiring = wiring
        self.signals = Signals(program, compiler, wiring)
        self.instances = 0
        signals = self.signals
        self._special: dict[str, Callable[[Unit, Act], int | None]] = {
            "acquire": lambda u, a: signals.acquire(u, reference(a.call), a.call),
            "commit": lambda u, a: signals.commit(u, *self._slot(u, a.call), a.call),
            "wait": lambda u, a: signals.wait(u, reference(a.call), a.call.loc),
            "release": lambda u, a: signals.release(u, *self._slot(u, a.call), a.call.loc),
            "arrive": signals.arrive,
            "expect_tx": signals.expect,
            "barrier_wait": signals.barrier_wait,
            "tcgen05_commit": signals.tcgen05_commit,
            "tmem_alloc": self._tmem,
            "tmem_free": self._tmem,
        }

    def _slot(self, unit: Unit, call: Call) -> tuple[str, int]:
        return reference(call), self.signals.slot(unit, call)

    def act(self, unit: Unit, act: Act) -> int | None:
        """Perform a primitive; its value if that is a slot."""
        if act.effects and STAYS.issuperset(act.effects):
            return None
        synchronises = any(isinstance(e, SyncEffect) for e in act.effects)
        if synchronises and unit.state.mask is not None:
            if act.effects == (SyncEffect("fence", "proxy"),):
                return None  # A fence of some threads covers nothing for certain.
            raise Beyond(f"{act.call.op} under a condition that differs between threads")
        special = self._special.get(act.call.op)
        if special is not None:
            return special(unit, act)
        accesses: list[Effect] = []
        for effect in act.effects:
            if isinstance(effect, Effect):
                accesses.append(effect)
                continue
            self._accesses(unit, act, accesses)
            accesses = []
            self._sync(unit, act.call, effect)
        self._accesses(unit, act, accesses)
        return None

    def _sync(self, unit: Unit, call: Call, effect: SyncEffect) -> None:
        action, what = effect.action, effect.what
        if (action, what) == ("fence", "proxy"):
            unit.all(ev.Fence(call.loc))
        elif (action, what) == ("drain", "tcgen05"):
            unit.all(ev.Drain(call.loc, "tcgen05_ld", None))
        elif action in ("commit", "drain") and what in _QUEUES:
            self._group(unit, call, effect)
        elif action in ("barrier", "arrive", "wait"):
            self.signals.hardware(unit, call, effect)
        else:
            raise Beyond(f"{call.op}: {action} of {what}")

    def _group(self, unit: Unit, call: Call, effect: SyncEffect) -> None:
        """Close a group, or wait for groups."""
        engine: Engine = effect.what  # type: ignore[assignment]
        to = unit.one if engine in _ELECTED else unit.all
        if effect.action == "commit":
            to(ev.Commit(call.loc, engine))
            return
        reads = engine == "bulk_group" and bool(static(call, "read"))
        to(ev.Drain(call.loc, engine, int(static(call, "pending")), reads))

    def _tmem(self, unit: Unit, act: Act) -> None:
        """Allocating and freeing count as writes of all columns: every use lies between."""
        tiles = self.program.resource(reference(act.call))
        assert isinstance(tiles, Tmem)
        shape = (WARPS, tiles.shape[1])
        region = Region(box_cells(shape, (0, 0), shape))
        self.instances += 1
        keys: list[Key] = [
            ("tmem", unit.rank, tiles.name, stage) for stage in range(tiles.stages or 1)
        ]
        columns = tuple(Access(k, region, "write", "generic", self.instances) for k in keys)
        unit.one(ev.Touch(act.call.loc, columns))
        self._accesses(unit, act, [e for e in act.effects if isinstance(e, Effect)])

    # -- accesses ----------------------------------------------------------------------------------

    def _accesses(self, unit: Unit, act: Act, effects: list[Effect]) -> None:
        if not effects:
            return
        self.instances += 1
        call, how = act.call, {e.completes for e in effects}
        if how == {"now"}:
            self._touch(unit, call, effects)
        elif how == {"mbarrier"}:
            self._copy(unit, call, effects)
        elif len(how) == 1:
            self._issue(unit, act, effects)
        else:
            raise Beyond(f"{call.op}: accesses that complete in different ways")

    def _located(
        self, unit: Unit, call: Call, effects: Iterable[Effect], part: Part
    ) -> tuple[Access, ...]:
        found = []
        for effect in effects:
            if effect.space == "regs":
                continue
            target = self.targets.of(call, effect)
            place = self.places.locate(target, effect.space, unit.state, part)
            if place is not None:
                value = self._stored(unit, call) if effect.action == "write" else None
                found.append(Access(*place, effect.action, effect.proxy, self.instances, value))
        return tuple(found)

    def _stored(self, unit: Unit, call: Call) -> Hashable:
        """What a store writes, or which place of a tensor nobody writes a copy brings."""
        if call.op == "store" and call.args[1] is not None:
            value: Any = self.compiler.compile(call.args[1])(unit.state)
            return value if isinstance(value, int | float) else None
        place = call.args[1] if len(call.args) > 1 else None
        if not isinstance(place, TensorRef) or place.tensor in self.written:
            return None
        index = tuple(self.compiler.compile(i)(unit.state) for i in place.index)
        known = all(isinstance(i, int) for i in index)
        return (call.op, place.tensor, *index) if known else None

    def _touch(self, unit: Unit, call: Call, effects: list[Effect]) -> None:
        for number, part in enumerate(unit.parts):
            for access in self._located(unit, call, effects, part):
                unit.touch(number, call.loc, access)

    def _issue(self, unit: Unit, act: Act, effects: list[Effect]) -> None:
        call = act.call
        engine: Engine = effects[0].completes  # type: ignore[assignment]
        if engine == "tcgen05" and effects[0].proxy == "generic":
            engine = "tcgen05_ld"
        if engine == "tcgen05":
            self._product(unit, call, effects)
            return
        if engine in _ELECTED:
            unit.one(ev.Issue(call.loc, engine, self._located(unit, call, effects, unit.whole)))
            return
        if engine == "wgmma":
            accesses = self._located(unit, call, effects, unit.whole)
            held, source = _name(call.args[0]), _name(call.args[1])
            unit.all(ev.Issue(call.loc, engine, accesses, held, source))
            return
        for part, events in zip(unit.parts, unit.lists, strict=True):
            accesses = self._located(unit, call, effects, part)
            held = act.target if engine == "tcgen05_ld" else None
            events.append(ev.Issue(call.loc, engine, accesses, held))

    def _product(self, unit: Unit, call: Call, effects: list[Effect]) -> None:
        """A product in tensor memory, with the memory of all CTAs that take part."""
        ranks = product_ranks(self.program, unit)
        init = operand(call, "init")
        adds = init is None or self.compiler.compile(init)(unit.state) is False
        located = self._located(unit, call, effects, unit.whole) if ranks else ()
        if not adds:
            # What a product that may start from zero finds in its tile is its own.
            located = tuple(sorted(located, key=lambda a: a.action == "read"))
        there = tuple(replace(a, key=(a.key[0], r, *a.key[2:])) for r in ranks for a in located)
        if there:
            unit.one(ev.Issue(call.loc, "tcgen05", there))

    # -- copies ------------------------------------------------------------------------------------

    def _copy(self, unit: Unit, call: Call, effects: list[Effect]) -> None:
        """A copy into this CTA, or of this CTA's slice into all of the cluster."""
        view = call.args[0]
        assert isinstance(view, View)
        parts = cluster_parts(call, self.program.resources) if call.op == "tma_load" else 1
        located = self._located(unit, call, effects, unit.whole)
        reads = tuple(a for a in located if a.action == "read")
        writes = tuple(a for a in located if a.action == "write")
        if parts > 1:
            writes = tuple(self._slice(unit, call, effects, parts))
        size = view_bytes(view) // parts
        landings = []
        for rank in self.wiring.ranks if parts > 1 else (unit.rank,):
            there = tuple(replace(a, key=(a.key[0], rank, *a.key[2:])) for a in writes)
            landings.append(Landing(self._completion(unit, call, view, rank), size, there))
        unit.one(ev.Copy(call.loc, tuple(landings), reads))

    def _slice(self, unit: Unit, call: Call, effects: list[Effect], parts: int) -> Iterable[Access]:
        """The rows that this CTA multicasts."""
        for effect in effects:
            if effect.action == "write":
                target = self.targets.sliced(call, effect, parts, unit.rank)
                place = self.places.locate(target, "smem", unit.state, unit.whole)
                if place is not None:
                    value = self._stored(unit, call)
                    yield Access(*place, "write", effect.proxy, self.instances, value)

    def _completion(self, unit: Unit, call: Call, view: View, rank: int) -> int:
        """The barrier that counts a copy's bytes in a CTA."""
        raw = operand(call, "barrier")
        if isinstance(raw, ResourceRef):
            slot = operand(call, "slot")
            number = 0 if slot is None else known(self.compiler, unit, slot, "the slot")
            return self.signals.mbarrier(unit, call, raw.name, number, rank)
        ring = completion.ring_of(call, view)
        assert ring is not None
        assert view.stage is not None
        stage = known(self.compiler, unit, view.stage, "the stage")
        return self.signals.full(ring, stage, rank)


def _name(e: Expr | None) -> str | None:
    return e.name if isinstance(e, VarRef) else None
