"""The abstract machine: actors, barriers and the events that actors perform.

A program at given sizes expands to a :class:`System`: straight-line lists of events without
values. An *actor* is what runs by itself: a warp. Three warps of a warpgroup whose first one
issues for all are one actor, unless the role asks which warp it is: they execute the same
statements and differ only in the rows they touch, so what can go wrong between two of them can go
wrong between one of them and the first. Engines have no list of their own: the events that start
them say when they may be complete.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Literal

from cake.diag import Span

Box = tuple[tuple[int, int], ...]
"""Half-open range along each axis of a global tensor."""
Action = Literal["read", "write", "atomic"]
Proxy = Literal["generic", "async"]
Engine = Literal["cp_async", "wgmma", "bulk_group", "tcgen05", "tcgen05_ld"]
"""Queues of asynchronous work of one actor that complete in order."""

Key = tuple[str, int, str, int]
"""A block of memory: space, CTA rank (-1 for global memory), buffer or tensor, stage."""


@dataclass(frozen=True, slots=True)
class Region:
    """Part of a block: bits of its cells, or a box of a tensor.

    ``exact``: all of it is accessed. Otherwise an unknown, not empty part is, because an index or
    a mask depends on data. ``layout``: how the elements of a view of a pool lie in its bytes, where
    views may differ.
    """

    cells: int | Box
    exact: bool = True
    layout: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Access:
    """An access to memory. Accesses of one ``instance`` are parts of one statement of one unit.

    ``value`` is what is stored, where it is plain to see (a number, or the place that is copied):
    equal stores do not conflict.
    """

    key: Key
    region: Region
    action: Action
    proxy: Proxy
    instance: int
    value: Hashable = None


@dataclass(frozen=True, slots=True)
class Event:
    """Something an actor does. ``place`` is the author's statement."""

    place: Span


@dataclass(frozen=True, slots=True)
class Wait(Event):
    """Wait until the phase of a parity of an mbarrier is complete."""

    barrier: int
    parity: int


@dataclass(frozen=True, slots=True)
class Arrive(Event):
    """Arrive at an mbarrier, after announcing ``tx`` bytes."""

    barrier: int
    count: int
    tx: int = 0


@dataclass(frozen=True, slots=True)
class Expect(Event):
    """Announce bytes without an arrival."""

    barrier: int
    tx: int


@dataclass(frozen=True, slots=True)
class ArriveWhenDone(Event):
    """An engine arrives once everything of it that was issued so far is complete."""

    barrier: int
    count: int
    engine: Engine


@dataclass(frozen=True, slots=True)
class Landing:
    """What a copy writes into one CTA, and the mbarrier there that counts its bytes."""

    barrier: int
    tx: int
    writes: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class Copy(Event):
    """A TMA or bulk copy into shared memory."""

    landings: tuple[Landing, ...]
    reads: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class Issue(Event):
    """Start work on an engine. ``held`` registers must not be touched until it is complete, those
    of ``source`` must not be written."""

    engine: Engine
    accesses: tuple[Access, ...]
    held: str | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Commit(Event):
    """Close the group of what was issued to an engine."""

    engine: Engine


@dataclass(frozen=True, slots=True)
class Drain(Event):
    """Wait until all but ``pending`` groups are complete; None: everything issued.

    ``reads_only``: their sources have been read.
    """

    engine: Engine
    pending: int | None
    reads_only: bool = False


@dataclass(frozen=True, slots=True)
class Fence(Event):
    """Order generic accesses so far before the async proxy."""


@dataclass(frozen=True, slots=True)
class Meet(Event):
    """Arrive at a hardware barrier with ``threads`` threads."""

    barrier: int
    threads: int


@dataclass(frozen=True, slots=True)
class Await(Event):
    """Wait for the generation of a hardware barrier in which this actor arrived last."""

    barrier: int


@dataclass(frozen=True, slots=True)
class Touch(Event):
    """Ordinary accesses to memory."""

    accesses: tuple[Access, ...]


@dataclass(frozen=True, slots=True)
class Use(Event):
    """Registers that some engine may own are read or written."""

    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mark(Event):
    """A tile ends, after so many steps of each ring. Nothing happens."""

    round: int
    steps: tuple[tuple[str, int], ...]


BarrierKind = Literal["full", "empty", "mbarrier", "hardware", "cluster"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """``count`` arrivals (mbarriers) or threads (hardware barriers) make a phase.

    A cluster barrier counts all threads that have not ended yet. ``guards``: blocks that a phase of
    an empty barrier hands to the producer, so that what they held is gone.
    """

    kind: BarrierKind
    name: str
    slot: int
    cta: int
    count: int
    guards: tuple[Key, ...] = ()

    def __str__(self) -> str:
        side = f".{self.kind}" if self.kind in ("full", "empty") else ""
        slot = "" if self.slot < 0 else f"[{self.slot}]"
        return f"{self.name}{side}{slot}" + (f" of CTA {self.cta}" if self.cta > 0 else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Actor:
    """``threads`` threads of unit ``unit`` of a role, and what they do.

    ``warps`` are the warps of the unit that it stands for, the last one excluded; None for all.
    """

    role: str
    unit: int
    warps: tuple[int, int] | None
    cta: int
    threads: int
    events: tuple[Event, ...]

    def __str__(self) -> str:
        part = ""
        if self.warps is not None:
            low, high = self.warps
            part = f" (warp {low})" if high == low + 1 else f" (warps {low}-{high - 1})"
        cta = f" of CTA {self.cta}" if self.cta > 0 else ""
        return f"{self.role}[{self.unit}]{part}{cta}"


@dataclass(frozen=True, slots=True, kw_only=True)
class System:
    """Everything that runs at the same time in one cluster."""

    barriers: tuple[Barrier, ...]
    actors: tuple[Actor, ...]
