"""Asynchronous work: operations in flight, groups, and when they take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from cake.ops.machine import MBarrier
from cake.simulate.orders import Order, When


@dataclass(slots=True, eq=False)
class Operation:
    """One asynchronous operation; steps happen in order fetch, land, complete."""

    kind: str
    owner: int
    fetch: Callable[[], Any]
    land: Callable[[Any], None]
    barriers: Sequence[MBarrier] = ()
    tx: int = 0
    arrivals: int = 0
    register: str | None = None
    fetched: bool = False
    landed: bool = False
    done: bool = False
    value: Any = None

    def run_fetch(self) -> None:
        """Read the sources, once."""
        if not self.fetched:
            self.value = self.fetch()
            self.fetched = True

    def run_land(self) -> None:
        """Write the destination, once."""
        if not self.landed:
            self.run_fetch()
            self.land(self.value)
            self.value = None
            self.landed = True

    def finish(self) -> None:
        """Everything that is left."""
        if self.done:
            return
        self.run_land()
        self.done = True
        for barrier in self.barriers:
            if self.tx:
                barrier.complete_tx(self.tx)
            if self.arrivals:
                barrier.arrive(self.arrivals)


@dataclass(slots=True)
class Groups:
    """Commit groups of one kind of operation of one unit; they finish in order."""

    open: list[Operation] = field(default_factory=list)
    closed: list[list[Operation]] = field(default_factory=list)

    def all(self) -> list[Operation]:
        """Operations not known to be finished, in issue order."""
        return [op for group in (*self.closed, self.open) for op in group if not op.done]


IN_ORDER = frozenset({"wgmma", "bulk_group", "cp_async", "tcgen05"})
"""Kinds whose operations of one unit take effect in issue order."""


class Engine:
    """All operations in flight, under one adversary."""

    def __init__(self, order: Order, random: Random) -> None:
        self.order = order
        self.random = random
        self.pending: list[Operation] = []
        self.groups: dict[tuple[int, str], Groups] = {}

    def _now(self, when: When) -> bool:
        return when == "early" or (when == "random" and self.random.random() < 0.5)

    def group(self, owner: int, kind: str) -> Groups:
        """The commit groups of a unit for one kind of operation."""
        return self.groups.setdefault((owner, kind), Groups())

    def issue(self, op: Operation) -> None:
        """Start an operation; early steps happen at once, if nothing older is in their way."""
        self.pending.append(op)
        if op.kind in IN_ORDER:
            group = self.group(op.owner, op.kind)
            blocked = bool(group.all())
            group.open.append(op)
            if blocked and self.order.land != "early":
                return
        if self._now(self.order.fetch):
            op.run_fetch()
        if op.fetched and self._now(self.order.land):
            op.run_land()
        if op.landed and self._now(self.order.complete):
            self._finish(op)

    def commit(self, owner: int, kind: str) -> None:
        """Close the open group."""
        group = self.group(owner, kind)
        group.closed.append(group.open)
        group.open = []

    def drain(self, owner: int, kind: str, pending: int, *, reads_only: bool) -> None:
        """Finish all but the last ``pending`` closed groups (their reads, if ``reads_only``)."""
        group = self.group(owner, kind)
        keep = len(group.closed) - pending
        for operations in group.closed[: max(keep, 0)]:
            for op in operations:
                if reads_only:
                    op.run_fetch()
                else:
                    self._finish(op)
        if not reads_only and keep > 0:
            group.closed = group.closed[keep:]

    def step(self) -> bool:
        """Finish one pending operation; False if there is none."""
        candidates = [op for op in self.pending if not op.done and self._first_of_kind(op)]
        if not candidates:
            return False
        late = self.order.complete == "late"
        chosen = candidates[0] if late else self.random.choice(candidates)
        self._finish(chosen)
        return True

    def _first_of_kind(self, op: Operation) -> bool:
        if op.kind not in IN_ORDER:
            return True
        return self.group(op.owner, op.kind).all()[0] is op

    def _finish(self, op: Operation) -> None:
        if op.kind in IN_ORDER:
            for older in self.group(op.owner, op.kind).all():
                if older is op:
                    break
                older.finish()
        op.finish()
        self.pending = [p for p in self.pending if not p.done]

    def unread(self, owner: int) -> bool:
        """Has the unit stores from shared memory whose reads are not known to have happened?"""
        return any(not op.fetched for op in self.group(owner, "bulk_group").all())

    def finish_all(self) -> None:
        """Let everything in flight take effect."""
        while self.step():
            pass
