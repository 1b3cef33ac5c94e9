"""Asynchronous work: operations in flight, groups, and when they take effect."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from random import Random
from typing import Any, Protocol

from cake.ir.nodes import Node
from cake.ops.base import Completion
from cake.ops.machine import MBarrier
from cake.simulate.errors import Finding
from cake.simulate.orders import Order, When


class Issuer(Protocol):
    """Who started an operation."""

    identity: int

    def locate(self, finding: Finding, place: Node | None) -> Finding:
        """Give a finding the place of the statement that started the operation."""
        ...


class Progress(IntEnum):
    """How far an operation is."""

    ISSUED = 0
    FETCHED = 1
    LANDED = 2
    DONE = 3


@dataclass(slots=True, eq=False, kw_only=True)
class Operation:
    """One asynchronous operation: it fetches, lands, then tells its barriers.

    ``after`` lists operations that land before it. ``known``: its unit has waited for it;
    ``known_read``: it has waited for its reads.
    """

    kind: Completion
    issuer: Issuer
    place: Node | None
    fetch: Callable[[], Any]
    land: Callable[[Any], None]
    barriers: Sequence[MBarrier] = ()
    tx: int = 0
    arrivals: int = 0
    after: Sequence[Operation] = ()
    progress: Progress = Progress.ISSUED
    known: bool = False
    known_read: bool = False
    value: Any = None

    def advance(self, to: Progress) -> None:
        """Bring the operation forward, everything that must land before it included."""
        try:
            while self.progress < to:
                self._step()
        except Finding as f:
            raise self.issuer.locate(f, self.place) from None

    def _step(self) -> None:
        if self.progress == Progress.ISSUED:
            self.value = self.fetch()
        elif self.progress == Progress.FETCHED:
            for op in self.after:
                op.advance(Progress.LANDED)
            self.land(self.value)
            self.value, self.after = None, ()
        else:
            for barrier in self.barriers:
                if self.tx:
                    barrier.complete_tx(self.tx)
                if self.arrivals:
                    barrier.arrive(self.arrivals)
        self.progress = Progress(self.progress + 1)


@dataclass(slots=True)
class Groups:
    """Commit groups of one kind of operation of one unit, oldest first.

    The first ``read`` closed groups are known to have read their sources.
    """

    open: list[Operation] = field(default_factory=list)
    closed: list[list[Operation]] = field(default_factory=list)
    read: int = 0

    def operations(self) -> list[Operation]:
        """Everything that the unit has not waited for."""
        return [op for group in (*self.closed, self.open) for op in group]


CHAINED = frozenset({"wgmma", "tcgen05"})
"""Kinds whose operations of one unit take effect in issue order. The others have no order: a later
cp.async or TMA store may land before an earlier one."""
GROUPED = frozenset({"wgmma", "tcgen05", "bulk_group", "cp_async"})


class Engine:
    """All operations in flight, under one adversary."""

    def __init__(self, order: Order, random: Random) -> None:
        self.order = order
        self.random = random
        self.pending: dict[Operation, None] = {}
        self.groups: dict[tuple[int, str], Groups] = {}
        self.last: dict[tuple[int, str], Operation] = {}
        self.asked = False
        """Whether a finding has asked what is in flight."""

    def group(self, owner: int, kind: str) -> Groups:
        """The commit groups of a unit for one kind of operation."""
        return self.groups.setdefault((owner, kind), Groups())

    def issue(self, op: Operation) -> None:
        """Start an operation; early steps happen at once."""
        key = (op.issuer.identity, op.kind)
        if op.kind in CHAINED:
            op.after = [self.last[key]] if key in self.last else []
            self.last[key] = op
        if op.kind in GROUPED:
            self.group(*key).open.append(op)
        self.pending[op] = None
        whens = (self.order.fetch, self.order.land, self.order.complete)
        for progress, when in zip(list(Progress)[1:], whens, strict=True):
            if not self._now(when):
                return
            self._advance(op, progress)

    def signal(self, op: Operation) -> None:
        """Start an operation that only arrives, after everything of its kind that its unit has
        issued so far: the unit learns of their end through the barrier."""
        before = self.group(op.issuer.identity, op.kind).operations()
        for earlier in before:
            earlier.known = True
        op.after = before
        self.pending[op] = None
        if self._now(self.order.complete):
            self._advance(op, Progress.DONE)

    def _now(self, when: When) -> bool:
        return when == "early" or (when == "random" and self.random.random() < 0.5)

    def _advance(self, op: Operation, to: Progress) -> None:
        op.advance(to)
        if op.progress == Progress.DONE:
            self.pending.pop(op, None)

    def commit(self, owner: int, kind: str) -> None:
        """Close the open group."""
        group = self.group(owner, kind)
        group.closed.append(group.open)
        group.open = []

    def drain(self, owner: int, kind: str, pending: int, *, reads_only: bool) -> None:
        """Finish all but the last ``pending`` closed groups (their reads, if ``reads_only``)."""
        group = self.group(owner, kind)
        count = max(len(group.closed) - pending, 0)
        for operations in group.closed[group.read if reads_only else 0 : count]:
            for op in operations:
                self._advance(op, Progress.FETCHED if reads_only else Progress.DONE)
                op.known_read = True
                op.known = not reads_only
        group.read = max(group.read, count)
        if not reads_only:
            group.closed = group.closed[count:]
            group.read -= count

    def step(self) -> bool:
        """Bring one pending operation forward; False if there is none."""
        if not self.pending:
            return False
        if self.order.pick == "random":
            op = self.random.choice(list(self.pending))
            self._advance(op, Progress(op.progress + 1))
            return True
        waiting = iter(self.pending) if self.order.pick == "oldest" else reversed(self.pending)
        self._advance(next(waiting), Progress.DONE)
        return True

    def bringing(self, arrived: Callable[[], bool]) -> Operation | None:
        """The operation in flight that makes ``arrived`` true by its landing.

        For the finding that ends a run: operations are landed to see.
        """
        if self.asked:
            return None
        self.asked = True
        for op in list(self.pending):
            try:
                op.advance(Progress.LANDED)
            except Finding:
                continue  # it would have been the next finding
            if arrived():
                return op
        return None

    def left_by(self, owner: int) -> Operation | None:
        """An operation that a unit has neither waited for nor left to a barrier."""
        for kind in GROUPED:
            for op in self.group(owner, kind).operations():
                if not (op.known or (kind == "bulk_group" and op.known_read)):
                    return op
        return None

    def copying(self, owners: frozenset[int]) -> Operation | None:
        """A copy of one of ``owners`` whose barrier nobody has had to wait for."""
        for op in self.pending:
            if op.kind == "mbarrier" and op.issuer.identity in owners:
                return op
        return None
