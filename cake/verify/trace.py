"""A role's blocking and signalling steps, one after another, at concrete sizes.

This is the interface between a program and whatever decides about its interleavings: today the
token run of :mod:`cake.verify.tokens` (rings and hardware barriers, without data), later the phase
simulation, which adds events of engines and mbarriers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Expr,
    For,
    If,
    ResourceRef,
    Stmt,
    TileLoop,
    VarRef,
    While,
    child_blocks,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Program
from cake.ir.types import Slot
from cake.ops.base import SyncEffect, lookup
from cake.ops.rings import ring_step
from cake.verify.concrete import Sample, Value, evaluate

MAX_EVENTS = 20_000

EventKind = Literal["acquire", "commit", "wait", "release", "sync", "arrive"]


@dataclass(frozen=True, slots=True)
class Event:
    """One step of a role.

    ``what`` is a ring, or the key of a hardware barrier: "cta", "cluster", or ``name[slot]`` of a
    named barrier.
    ``step`` counts the acquisitions of the ring by this role before the slot's own (-1 for
    barriers).
    """

    kind: EventKind
    what: str
    step: int
    place: Stmt | Call


class Undecided(Exception):
    """Which steps follow depends on data; ``place`` is the statement that decides."""

    def __init__(self, place: Stmt) -> None:
        super().__init__(place)
        self.place = place


def events(program: Program, role: str, sample: Sample, unit: int = 0) -> list[Event]:
    """All steps of one unit of a role.

    Raises:
        Undecided: control flow around a step depends on data, or there are too many steps.
    """
    walk = _Walk(program, role, sample)
    body = next(r for r in program.roles if r.role == role)
    if body.unit is not None:
        walk.values[body.unit] = unit
    walk.block(body.body)
    return walk.found


@lru_cache(maxsize=256)
def _steps_at(program: Program, role: str) -> dict[int, tuple[Call, ...]]:
    """The step calls in each statement's own expressions, by the statement's identity."""
    found: dict[int, tuple[Call, ...]] = {}
    for s in walk_stmts(program.body_of(role)):
        calls = (e for e in reversed(tuple(walk_exprs(s))) if isinstance(e, Call))
        found[id(s)] = tuple(c for c in calls if _step_of(c) is not None)
    return found


@lru_cache(maxsize=256)
def _eventful(program: Program, role: str) -> frozenset[int]:
    """Identities of the statements whose blocks contain steps, brackets included."""
    steps = _steps_at(program, role)
    return frozenset(
        id(s)
        for s in walk_stmts(program.body_of(role))
        if isinstance(s, Bracket)
        or any(
            isinstance(x, Bracket) or steps[id(x)] for b in child_blocks(s) for x in walk_stmts(b)
        )
    )


@lru_cache(maxsize=256)
def _deciding(program: Program, role: str) -> frozenset[str]:
    """Variables from which the steps and the control flow around them follow."""
    steps, eventful = _steps_at(program, role), _eventful(program, role)
    names: set[str] = set()
    sources: list[tuple[frozenset[str], frozenset[str]]] = []
    for s in walk_stmts(program.body_of(role)):
        if steps[id(s)] or id(s) in eventful:
            names |= _mentioned(s)
        if isinstance(s, Assign):
            sources.append((frozenset(s.targets), _mentioned(s)))
        elif id(s) not in eventful and isinstance(s, If):
            inside = [x for b in child_blocks(s) for x in walk_stmts(b) if isinstance(x, Assign)]
            sources.append((frozenset(t for x in inside for t in x.targets), _mentioned(s)))
    before = -1
    while len(names) != before:
        before = len(names)
        names.update(n for t, needed in sources if not names.isdisjoint(t) for n in needed)
    return frozenset(names)


def _mentioned(s: Stmt) -> frozenset[str]:
    return frozenset(e.name for e in walk_exprs(s) if isinstance(e, VarRef))


@lru_cache(maxsize=256)
def _assigned(program: Program, role: str) -> dict[int, tuple[str, ...]]:
    """For each statement, the deciding variables that its blocks assign."""
    deciding = _deciding(program, role)
    return {
        id(s): tuple(
            {
                t
                for b in child_blocks(s)
                for x in walk_stmts(b)
                if isinstance(x, Assign)
                for t in x.targets
                if t in deciding
            }
        )
        for s in walk_stmts(program.body_of(role))
    }


class _Walk:
    def __init__(self, program: Program, role: str, sample: Sample) -> None:
        self.steps = _steps_at(program, role)
        self.eventful = _eventful(program, role)
        self.deciding = _deciding(program, role)
        self.assigned = _assigned(program, role)
        self.sample = sample
        self.values: dict[str, Value] = dict(sample.values)
        self.slots: dict[str, tuple[str, int]] = {}
        self.taken: dict[tuple[str, str], int] = {}
        self.found: list[Event] = []

    def block(self, block: Block) -> None:
        for s in block:
            self.statement(s)

    def statement(self, s: Stmt) -> None:
        for call in self.steps[id(s)]:
            self.call(call, s)
        if isinstance(s, Assign):
            self.assign(s)
        elif id(s) not in self.eventful:
            self.forget(s)
        elif isinstance(s, Bracket):
            self.bracket(s)
        elif isinstance(s, If):
            cond = self.known(s.cond, s)
            self.block(s.then if cond else s.orelse)
        elif isinstance(s, For):
            start, stop, step = (int(self.known(e, s)) for e in (s.start, s.stop, s.step))
            for i in range(start, stop, step):
                self.values[s.var] = i
                self.block(s.body)
        elif isinstance(s, TileLoop):
            for tile in self.sample.tiles:
                self.values |= zip(s.vars, tile, strict=True)
                self.block(s.body)
        elif isinstance(s, While):
            while self.known(s.cond, s):
                self.block(s.body)

    def known(self, e: Expr, s: Stmt) -> int | float | bool:
        value = evaluate(e, self.values)
        if value is None:
            raise Undecided(s)
        return value

    def forget(self, s: Stmt) -> None:
        """Skip blocks without steps; what they assign is unknown unless it is plain to see."""
        if not self.assigned[id(s)]:
            return
        if isinstance(s, If) and (cond := evaluate(s.cond, self.values)) is not None:
            self.block(s.then if cond else s.orelse)
            return
        self.values |= dict.fromkeys(self.assigned[id(s)])

    def assign(self, s: Assign) -> None:
        if self.deciding.isdisjoint(s.targets):
            return
        if isinstance(s.value.type, Slot):
            source = s.value
            if isinstance(source, VarRef) and source.name in self.slots:
                self.slots[s.targets[0]] = self.slots[source.name]
            elif isinstance(source, Call):
                ring = s.value.type.pipeline
                kind = "acquire" if source.op == "acquire" else "wait"
                self.slots[s.targets[0]] = (ring, self.taken[ring, kind] - 1)
        value = evaluate(s.value, self.values) if len(s.targets) == 1 else None
        self.values |= dict.fromkeys(s.targets, value)

    def bracket(self, s: Bracket) -> None:
        first, last = ("acquire", "commit") if s.side == "fill" else ("wait", "release")
        step = self.take(s.pipeline, first, s)
        self.slots[s.slot] = (s.pipeline, step)
        self.block(s.body)
        self.add(last, s.pipeline, step, s)

    def take(self, ring: str, kind: str, place: Stmt | Call) -> int:
        step = self.taken.get((ring, kind), 0)
        self.taken[ring, kind] = step + 1
        self.add(kind, ring, step, place)
        return step

    def call(self, call: Call, s: Stmt) -> None:
        kind = _step_of(call)
        assert kind is not None
        ref = call.args[0] if call.args else None
        name = ref.name if isinstance(ref, ResourceRef) else ""
        if call.op in ("acquire", "wait"):
            self.take(name, call.op, call)
        elif kind in ("commit", "release"):
            slot = call.args[1]
            held = self.slots.get(slot.name) if isinstance(slot, VarRef) else None
            if held is None:
                raise Undecided(s)
            self.add(kind, name, held[1], call)
        elif name:
            number = 0 if call.args[1] is None else self.known(call.args[1], s)
            self.add(kind, f"{name}[{number}]", -1, call)
        else:
            self.add(kind, _BARRIERS[call.op], -1, call)

    def add(self, kind: str, what: str, step: int, place: Stmt | Call) -> None:
        if len(self.found) == MAX_EVENTS:
            raise Undecided(place if isinstance(place, Stmt) else Stmt(loc=place.loc))
        self.found.append(Event(kind, what, step, place))  # type: ignore[arg-type]


_BARRIERS = {"cta_sync": "cta", "cluster_sync": "cluster"}


def _step_of(e: Expr) -> EventKind | None:
    """What a call does as a step, None if it is none."""
    if not isinstance(e, Call):
        return None
    step = ring_step(e)
    if step is not None:
        return step
    if e.op in _BARRIERS:
        return "sync"
    primitive = lookup(e.op)
    for effect in () if primitive is None else primitive.effects(e):
        if effect == SyncEffect("barrier", "named"):
            return "sync"
        if effect == SyncEffect("arrive", "named"):
            return "arrive"
    return None
