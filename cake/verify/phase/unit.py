"""A unit whose events are being listed, and the values that a performer asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cake.diag import Span
from cake.ir.nodes import Call, Expr, ResourceRef
from cake.verify.phase.events import Access, Event, Key, Touch
from cake.verify.phase.regions import united
from cake.verify.phase.scalars import Compiler, UnitState, Value

WARP = 32


class Beyond(Exception):
    """Something the abstract machine cannot follow, with the reason."""


class NoSlot(Exception):
    """A unit names a slot that a barrier does not have."""

    def __init__(self, unit: Unit, place: Span, name: str, slot: int) -> None:
        super().__init__(name)
        self.unit = unit
        self.place = place
        self.name = name
        self.slot = slot


@dataclass(frozen=True, slots=True)
class Part:
    """Threads [low, high) of a unit, which one actor stands for."""

    low: int
    high: int

    @property
    def threads(self) -> int:
        return self.high - self.low

    def of(self, value: Value) -> Value:
        """The part's share of a value."""
        return value[self.low : self.high] if isinstance(value, np.ndarray) else value


@dataclass(slots=True)
class Stretch:
    """Ordinary accesses of an actor since its last other event: where in its list each is.

    ``end`` is the length of the list after the last of them. Nobody sees in which order they
    happen, so that those of one statement to one block are put together.
    """

    end: int = 0
    at: dict[tuple[int, Key, str], int] = field(default_factory=dict)


@dataclass(slots=True)
class Unit:
    """A unit: its state, its actors' parts and their events.

    ``steps`` counts the steps taken on each side of each ring.
    """

    role: str
    index: int
    rank: int
    state: UnitState
    parts: tuple[Part, ...]
    lists: tuple[list[Event], ...]
    steps: dict[tuple[str, str], int] = field(default_factory=dict)
    stretches: tuple[Stretch, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.stretches = tuple(Stretch() for _ in self.lists)

    @property
    def whole(self) -> Part:
        return Part(0, self.state.threads)

    def all(self, event: Event) -> None:
        """Every actor of the unit does this."""
        for events in self.lists:
            events.append(event)

    def one(self, event: Event) -> None:
        """The thread that issues does this."""
        self.lists[0].append(event)

    def touch(self, part: int, place: Span, access: Access) -> None:
        """A part's actor accesses memory in the ordinary way."""
        events, stretch = self.lists[part], self.stretches[part]
        if len(events) != stretch.end:
            stretch.at.clear()
        # By identity: a statement has one place, and places are slow to hash.
        key = (id(place), access.key, access.action)
        at = stretch.at.get(key)
        before = None if at is None else events[at]
        if isinstance(before, Touch):
            assert at is not None
            (old,) = before.accesses
            region = united(old.region, access.region)
            value = old.value if old.value == access.value else None
            if region is old.region and value == old.value:
                return
            if region is not None:
                both = Access(old.key, region, old.action, old.proxy, old.instance, value)
                events[at] = Touch(place, (both,))
                return
        stretch.at[key] = len(events)
        events.append(Touch(place, (access,)))
        stretch.end = len(events)


def known(compiler: Compiler, unit: Unit, e: Expr, what: str) -> int:
    """An integer that must not depend on data (Beyond otherwise)."""
    value = compiler.compile(e)(unit.state)
    if not isinstance(value, int | np.integer):
        raise Beyond(f"{what} in line {e.loc.line}, which depends on data")
    return int(value)


def reference(call: Call) -> str:
    """The resource that a call's first operand names."""
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    return ref.name
