"""Accesses to shared memory that other threads, or the async proxy, may not have seen yet.

Threads of a unit run in lock-step here, so a missing barrier between two of them, or between a
thread's proxy fence and the thread that issues the copy, would change no value. The stamps make it
visible: every byte carries the numbers of two rows, for its last store and its last load. A row
stands for one thread, one statement and one stretch between two synchronisations of the unit. It is
settled when its thread has synchronised: towards other threads by an arrival at any barrier (or a
release), towards the async proxy by a proxy fence and an arrival after it. (PTX ISA, "Memory
Consistency Model", "Proxies".)
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cake.diag import Span

SETTLED = 0
"""The row of everything that needs no further synchronisation."""
FENCED, STORED = 1, 2
"""Towards the async proxy: fenced without an arrival since, and not fenced. 0 is settled."""
SEVERAL = -1
"""In place of a thread: several threads take part."""


@dataclass(frozen=True, slots=True)
class Row:
    """Who accessed where, for messages."""

    who: str
    thread: int
    place: Span

    def __str__(self) -> str:
        return self.who if self.thread == SEVERAL else f"thread {self.thread} of {self.who}"


FIELDS = np.dtype(
    [
        ("unit", np.int32),
        ("epoch", np.int32),
        ("thread", np.int32),
        ("unsynced", np.bool_),
        ("proxy", np.uint8),
    ]
)


class Stamps:
    """The rows of the CTAs of one cluster."""

    def __init__(self) -> None:
        self.size = 1
        self.rows = np.zeros(1, FIELDS)
        self.origins: list[tuple[int, str, Span]] = []
        self.several: dict[int, Any] = {}
        """Which threads those are, by the row that stands for several."""
        self.units = 0
        self.released: Any = 0
        """What fences and releases towards global memory have made known: a clock."""

    def join(self) -> int:
        """A unit more; its number, from 1."""
        self.units += 1
        return self.units

    def add(self, unit: int, epoch: int, threads: int, who: str, place: Span) -> int:
        """A block: a row for each thread of a unit and one for several; the number of the first."""
        first, end = self.size, self.size + threads + 1
        if end > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros(max(end, len(self.rows)), FIELDS)])
        block = self.rows[first:end]
        block["unit"], block["epoch"] = unit, epoch
        block["unsynced"], block["proxy"] = True, STORED
        block["thread"][:-1], block["thread"][-1] = np.arange(threads), SEVERAL
        self.origins.append((first, who, place))
        self.size = end
        return first

    def racing(
        self, rows: Any, unit: Accesses, threads: Any, excused: Callable[[Any], bool]
    ) -> Row | None:
        """An access among ``rows`` that ``threads`` of ``unit`` may not have seen.

        ``threads`` has a thread for each row, or SEVERAL. ``excused`` says of the threads of an
        access by several of the same unit whether it does no harm.
        """
        if not np.any(rows):
            return None
        alone = np.not_equal(threads, SEVERAL) & (self.rows["thread"][rows] == threads)
        units = self.rows["unit"][rows]
        mates = units == unit.number
        hidden = self.rows["epoch"][rows] > unit.known()[units]
        bad = np.where(mates, self.rows["unsynced"][rows] & ~alone, hidden)
        for row in np.unique(np.broadcast_to(rows, bad.shape)[bad & mates]):
            if int(row) in self.several and excused(self.several[int(row)]):
                bad &= rows != row
        return self._first(rows, bad)

    def hidden(self, rows: Any, state: int) -> Row | None:
        """A store among ``rows`` that the async proxy may not see, being in the given state."""
        return self._first(rows, self.rows["proxy"][rows] == state)

    def _first(self, rows: Any, bad: Any) -> Row | None:
        if not np.any(bad):
            return None
        row = int(np.broadcast_to(rows, bad.shape)[bad][0])
        # Origins are in the order of their blocks.
        at = bisect_right(self.origins, row, key=lambda origin: origin[0]) - 1
        _, who, place = self.origins[at]
        return Row(who, int(self.rows["thread"][row]), place)


@dataclass(slots=True)
class Accesses:
    """One unit's accesses that are not settled, and what it knows of those of others.

    ``stored``: blocks that some thread has not fenced; ``fenced``: blocks with a fence that no
    arrival has followed. An *epoch* of a unit ends with an arrival; its clock has the last epoch of
    each unit that it knows of, because it has waited for an arrival after it.
    """

    stamps: Stamps
    threads: int
    who: str
    number: int = field(init=False)
    epoch: int = 1
    clock: Any = 0
    current: dict[tuple[Span, bool], int] = field(default_factory=dict)
    unsynced: list[int] = field(default_factory=list)
    stored: list[int] = field(default_factory=list)
    fenced: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.number = self.stamps.join()

    def known(self) -> Any:
        """The clock, with a place for every unit; place 0 is for what is settled."""
        if np.ndim(self.clock) == 0:
            self.clock = np.zeros(self.stamps.units + 1, np.int64)
        return self.clock

    def learn(self, clock: Any) -> None:
        """The unit has waited for arrivals made at such a clock, or read what they released."""
        self.clock = np.maximum(self.known(), clock)

    def rows(self, place: Span, threads: Any, mask: Any, *, store: bool) -> Any:
        """The rows for accesses by ``threads`` in the statement at ``place`` from now on; where
        several threads take part, they are those of ``mask``."""
        block = self.current.get((place, store))
        if block is None:
            block = self.stamps.add(self.number, self.epoch, self.threads, self.who, place)
            self.current[place, store] = block
            self.unsynced.append(block)
            if store:
                self.stored.append(block)
        several = block + self.threads
        self.stamps.several[several] = mask | self.stamps.several.get(several, mask)
        return block + np.where(threads == SEVERAL, self.threads, threads)

    def fence(self, mask: Any) -> None:
        """The active threads fence their stores towards the async proxy."""
        for block in self.stored:
            state = self._block(block)["proxy"]
            fenced = np.append(mask, not np.any(self.stamps.several[block + self.threads] & ~mask))
            state[fenced & (state == STORED)] = FENCED
            # Thread 0 issues the copies: it needs no barrier to know of its own fence.
            if state[0] == FENCED:
                state[0] = SETTLED
            self.fenced.append(block)
        self.stored = [b for b in self.stored if (self._block(b)["proxy"] == STORED).any()]
        self.current = {}

    def publish(self) -> Any:
        """An arrival, or a release: what was accessed, and fenced, before is known to those who
        wait for it; the clock that they learn."""
        for block in self.unsynced:
            self._block(block)["unsynced"] = False
        for block in self.fenced:
            state = self._block(block)["proxy"]
            state[state == FENCED] = SETTLED
        self.unsynced, self.fenced, self.current = [], [], {}
        self.known()[self.number] = self.epoch
        self.epoch += 1
        return self.clock.copy()

    def _block(self, first: int) -> Any:
        return self.stamps.rows[first : first + self.threads + 1]
