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


class Stamps:
    """The rows of the CTAs of one cluster."""

    def __init__(self) -> None:
        self.size = 1
        self.unit = np.zeros(1, np.int32)
        self.thread = np.zeros(1, np.int32)
        self.unsynced = np.zeros(1, np.bool_)
        self.proxy = np.zeros(1, np.uint8)
        self.origins: dict[int, tuple[str, Span]] = {}
        self.open_blocks = 0
        """Blocks that are not visible to other threads yet."""

    def add(self, unit: int, threads: int, who: str, place: Span) -> int:
        """A block of one row for each thread of a unit; returns the number of the first."""
        first, end = self.size, self.size + threads
        if end > len(self.unit):
            more = max(end, 2 * len(self.unit)) - len(self.unit)
            for name in ("unit", "thread", "unsynced", "proxy"):
                old = getattr(self, name)
                setattr(self, name, np.concatenate([old, np.zeros(more, old.dtype)]))
        self.unit[first:end] = unit
        self.thread[first:end] = np.arange(threads)
        self.unsynced[first:end] = True
        self.proxy[first:end] = STORED
        self.origins[first] = (who, place)
        self.size = end
        self.open_blocks += 1
        return first

    def racing(self, rows: Any, unit: int, threads: Any) -> Row | None:
        """A store among ``rows`` that ``threads`` of ``unit`` may not see yet.

        ``threads`` has a thread for each row, or -1 where several threads read.
        """
        if not self.open_blocks:
            return None
        own = (self.unit[rows] == unit) & (self.thread[rows] == threads)
        return self._first(rows, self.unsynced[rows] & ~own)

    def hidden(self, rows: Any, state: int) -> Row | None:
        """A store among ``rows`` that the async proxy may not see, being in the given state."""
        return self._first(rows, self.proxy[rows] == state)

    def _first(self, rows: Any, bad: Any) -> Row | None:
        if not np.any(bad):
            return None
        row = int(np.broadcast_to(rows, bad.shape)[bad][0])
        block = row - int(self.thread[row])
        who, place = self.origins[block]
        return Row(who, int(self.thread[row]), place)


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
            part = self.stamps.proxy[block : block + self.threads]
            part[mask & (part == STORED)] = FENCED
            # Thread 0 issues the copies: it needs no barrier to know of its own fence.
            if part[0] == FENCED:
                part[0] = SETTLED
        self.current = {}

    def publish(self) -> None:
        """An arrival, or a release: what was stored, and fenced, before is visible after it."""
        for block in self.unsynced:
            self.stamps.unsynced[block : block + self.threads] = False
        self.stamps.open_blocks -= len(self.unsynced)
        for block in self.proxied:
            part = self.stamps.proxy[block : block + self.threads]
            part[part == FENCED] = SETTLED
        self.proxied = [b for b in self.proxied if self._hidden(b)]
        self.unsynced = []
        self.current = {}

    def _hidden(self, block: int) -> bool:
        return bool(self.stamps.proxy[block : block + self.threads].any())
