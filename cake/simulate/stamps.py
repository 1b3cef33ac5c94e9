"""Stores of shared memory that other threads, or the async proxy, may not see yet.

Threads of a unit run in lock-step here, so a missing barrier between two of them, or between a
thread's proxy fence and the thread that issues the copy, would change no value. The stamps make it
visible: every byte carries the number of a row, which stands for one thread, one statement and one
stretch between two synchronisations of the storing unit. A row is settled when its thread has made
the store visible: to other threads by an arrival at any barrier (or a release), to the async proxy
by a proxy fence and an arrival after it. (PTX ISA, "Memory Consistency Model", "Proxies".)
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cake.diag import Span

SETTLED = 0
"""The row of everything that needs no further synchronisation."""
FENCED, STORED = 1, 2
"""Towards the async proxy: fenced without an arrival since, and not fenced. 0 is settled."""


@dataclass(frozen=True, slots=True)
class Row:
    """Who stored where, for messages."""

    who: str
    thread: int
    place: Span


FIELDS = np.dtype(
    [("unit", np.int32), ("thread", np.int32), ("unsynced", np.bool_), ("proxy", np.uint8)]
)


class Stamps:
    """The rows of the CTAs of one cluster."""

    def __init__(self) -> None:
        self.size = 1
        self.rows = np.zeros(1, FIELDS)
        self.origins: dict[int, tuple[str, Span]] = {}
        self.open_blocks = 0
        """Blocks that are not visible to other threads yet."""

    def add(self, unit: int, threads: int, who: str, place: Span) -> int:
        """A block of one row for each thread of a unit; returns the number of the first."""
        first, end = self.size, self.size + threads
        if end > len(self.rows):
            self.rows = np.concatenate([self.rows, np.zeros(max(end, len(self.rows)), FIELDS)])
        block = self.rows[first:end]
        block["unit"], block["thread"] = unit, np.arange(threads)
        block["unsynced"], block["proxy"] = True, STORED
        self.origins[first] = (who, place)
        self.size = end
        self.open_blocks += 1
        return first

    def racing(self, rows: Any, unit: int, threads: Any) -> Row | None:
        """A store among ``rows`` that ``threads`` of ``unit`` may not see yet.

        ``threads`` has a thread for each row, or -1 where several threads read.
        """
        own = (self.rows["unit"][rows] == unit) & (self.rows["thread"][rows] == threads)
        return self._first(rows, self.rows["unsynced"][rows] & ~own)

    def hidden(self, rows: Any, state: int) -> Row | None:
        """A store among ``rows`` that the async proxy may not see, being in the given state."""
        return self._first(rows, self.rows["proxy"][rows] == state)

    def _first(self, rows: Any, bad: Any) -> Row | None:
        if not np.any(bad):
            return None
        row = int(np.broadcast_to(rows, bad.shape)[bad][0])
        thread = int(self.rows["thread"][row])
        who, place = self.origins[row - thread]
        return Row(who, thread, place)


@dataclass(slots=True)
class Writer:
    """One unit's stores that are not settled."""

    stamps: Stamps
    identity: int
    threads: int
    who: str
    current: dict[Span, int] = field(default_factory=dict)
    unsynced: list[int] = field(default_factory=list)
    proxied: list[int] = field(default_factory=list)

    def rows(self, place: Span) -> int:
        """The first row of the block for stores of the statement at ``place`` from now on."""
        block = self.current.get(place)
        if block is None:
            block = self.stamps.add(self.identity, self.threads, self.who, place)
            self.current[place] = block
            self.unsynced.append(block)
            self.proxied.append(block)
        return block

    def fence(self, mask: Any) -> None:
        """The active threads fence their stores towards the async proxy."""
        for block in self.proxied:
            state = self._block(block)["proxy"]
            state[mask & (state == STORED)] = FENCED
            # Thread 0 issues the copies: it needs no barrier to know of its own fence.
            if state[0] == FENCED:
                state[0] = SETTLED
        self.current = {}

    def publish(self) -> None:
        """An arrival, or a release: what was stored, and fenced, before is visible after it."""
        for block in self.unsynced:
            self._block(block)["unsynced"] = False
        self.stamps.open_blocks -= len(self.unsynced)
        for block in self.proxied:
            state = self._block(block)["proxy"]
            state[state == FENCED] = SETTLED
        self.proxied = [b for b in self.proxied if self._block(b)["proxy"].any()]
        self.unsynced = []
        self.current = {}

    def _block(self, first: int) -> Any:
        return self.stamps.rows[first : first + self.threads]
