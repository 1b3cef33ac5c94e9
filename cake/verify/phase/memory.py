"""Accesses to memory, and whether a later one is ordered after those it conflicts with."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from cake.verify.phase.clocks import ActorState, Clock
from cake.verify.phase.events import Access, Event, Key
from cake.verify.phase.regions import covers, overlap, united

Conflict = Literal["unordered", "unfenced"]

RECENT = 8
"""Records of a block that are looked through for one that a new access makes superfluous."""


@dataclass(frozen=True, slots=True)
class Record:
    """An access under way or past.

    It was made, or began, when its actor's time was ``now``. It is complete for whoever has at
    least ``value`` in ``component`` of its clock, and the async proxy sees it if the same holds of
    ``fenced`` (None: it was made through that proxy). ``happened`` is a causal component that tells
    of a copy's completion: accesses through the async proxy need no more than that. ``inorder``
    names the queue in which the access takes its turn, if accesses of one queue do not race.
    """

    state: ActorState
    event: Event
    access: Access
    component: int
    value: int
    fenced: int | None
    now: int
    happened: int | None = None
    inorder: tuple[int, str] | None = None

    def complete(self, clock: Clock) -> bool:
        """Whether the access is complete for certain where a clock stands."""
        return bool(clock[self.component] >= self.value)

    def before(self, later: Access, clock: Clock) -> bool:
        """Whether an access made where the clock stands comes after this one."""
        if self.complete(clock):
            return True
        known = later.proxy == "async" and self.happened is not None
        return known and bool(clock[self.happened] >= self.value)


@dataclass(frozen=True, slots=True)
class Race:
    """Two conflicting accesses of one block; ``certain`` is False if data may keep them apart."""

    kind: Conflict
    old: Record
    new: Record
    certain: bool


@dataclass(slots=True)
class _Block:
    """Accesses to one block that something later may still conflict with."""

    reads: list[Record]
    writes: list[Record]


class Memory:
    """All blocks of memory of a cluster."""

    def __init__(self) -> None:
        self.blocks: dict[Key, _Block] = {}
        self.written: dict[Key, dict[tuple[int, ...], int]] = {}
        """Cells of shared and tensor memory that hold data, by block and layout."""

    def unwritten(self, access: Access) -> bool:
        """Whether an access surely reads cells that hold no data; a write gives them data."""
        cells = access.region.cells
        if access.key[0] not in ("smem", "tmem") or not isinstance(cells, int):
            return False
        if access.key[0] == "tmem" and access.action == "write" and access.proxy == "generic":
            self.forget(access.key)  # Allocated or freed: products write through the other proxy.
            return False
        written = self.written.setdefault(access.key, {})
        held = written.get(access.region.layout, 0)
        if access.action != "read":
            if access.region.exact:
                for layout in written:
                    written[layout] &= ~cells
            written[access.region.layout] = held | cells
        return access.action != "write" and access.region.exact and bool(cells & ~held)

    def forget(self, key: Key) -> None:
        """What a block holds is no longer anybody's to read."""
        self.written.pop(key, None)

    def access(self, new: Record, clock: Clock) -> list[Race]:
        """An access begins where the clock stands: its conflicts."""
        block = self.blocks.get(new.access.key)
        if block is None:
            block = self.blocks[new.access.key] = _Block([], [])
        races: list[Race] = []
        if new.access.action == "read":
            _meet(block.writes, new, clock, races)
            _add(block.reads, new)
        else:
            block.reads = _meet(block.reads, new, clock, races)
            block.writes = _meet(block.writes, new, clock, races)
            _add(block.writes, new)
        return races


def _meet(old: list[Record], new: Record, clock: Clock, races: list[Race]) -> list[Record]:
    """Compare an access with earlier ones; those with which something may still conflict."""
    kept = []
    cells = new.access.region.cells
    for r in old:
        others = r.access.region.cells
        # Most records of a block lie elsewhere in it; this tells at once.
        if isinstance(cells, int) and isinstance(others, int) and not cells & others:
            kept.append(r)
            continue
        found = overlap(r.access.region, new.access.region)
        if found == "no":
            kept.append(r)
            continue
        kind = _conflict(r, new, clock)
        if kind is not None:
            races.append(Race(kind, r, new, certain=found == "yes"))
        if not (covers(new.access.region, r.access.region) and r.before(new.access, clock)):
            kept.append(r)
    return kept


def _conflict(old: Record, new: Record, clock: Clock) -> Conflict | None:
    a, b = old.access, new.access
    if a.instance == b.instance or (a.action == "atomic" and b.action == "atomic"):
        return None
    if old.inorder is not None and old.inorder == new.inorder:
        return None
    if old.before(b, clock):
        return None if _fenced(old, b, clock) else "unfenced"
    same = a.value is not None and a.value == b.value and a.action == b.action == "write"
    return None if same else "unordered"


def _fenced(old: Record, later: Access, clock: Clock) -> bool:
    """Whether a complete access is ordered before a later one across proxies.

    Reads are left to the rules on hand-backs. Tensor memory has fences of its own.
    """
    if old.fenced is None or later.proxy == "generic" or later.key[0] == "tmem":
        return True
    return old.access.action == "read" or bool(clock[old.fenced] >= old.value)


def _add(records: list[Record], new: Record) -> None:
    """Remember an access; one that says no more than an earlier one takes its place."""
    for i in range(len(records) - 1, max(-1, len(records) - 1 - RECENT), -1):
        old = records[i]
        alike = (
            old.component == new.component
            and old.state is new.state
            and old.access.action == new.access.action
            and old.event.place == new.event.place
        )
        region = united(old.access.region, new.access.region) if alike else None
        if region is not None and (old.value == new.value or region == new.access.region):
            records[i] = replace(new, access=replace(new.access, region=region))
            return
    records.append(new)
