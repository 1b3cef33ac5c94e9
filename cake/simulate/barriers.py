"""Barriers of the simulator: mbarriers with exact phases, and hardware barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from cake.diag import Related
from cake.ops.machine import BarrierState
from cake.simulate.codes import BARRIER_OVERRUN, BARRIER_PAIRING
from cake.simulate.errors import Finding, Origin

MAX_TX = 2**20 - 1
"""Largest transaction count, either sign (PTX ISA, "Contents of the mbarrier object")."""


@dataclass(slots=True)
class MBarrierState:
    """One mbarrier (PTX ISA, "Phase of the mbarrier object").

    ``phase`` counts completed phases. ``on_flip`` runs when a phase completes, with whose arrival
    was the last one. ``arrived`` has the arrivals of the phase at hand.
    """

    name: str
    count: int
    pending: int = -1
    tx: int = 0
    phase: int = 0
    on_flip: Callable[[Origin | None], None] | None = None
    arrived: list[Origin] = field(default_factory=list)
    clock: Any = 0
    """What those who have arrived know (:class:`cake.simulate.stamps.Accesses`)."""

    def __post_init__(self) -> None:
        self.pending = self.count

    def arrive(self, count: int = 1, *, tx: int = 0, by: Origin | None = None) -> None:
        """``count`` arrivals, after expecting ``tx`` bytes."""
        self._expect(tx)
        self.pending -= count
        if by is not None:
            self.arrived.append(by)
        if self.pending < 0:
            raise Finding(
                BARRIER_OVERRUN,
                f"{self.name} gets more than {self.count} arrivals in phase {self.phase}",
                {"barrier": self.name, "count": self.count, "phase": self.phase},
                related=self.arrivals(),
            )
        self._flip()

    def arrivals(self) -> tuple[Related, ...]:
        """Where those of the phase at hand were made, each place once."""
        return _once(self.arrived, f"arrival at {self.name} in phase {self.phase}")

    def expect_tx(self, tx: int) -> None:
        """``tx`` more bytes are expected."""
        self._expect(tx)
        self._flip()

    def complete_tx(self, tx: int) -> None:
        """``tx`` bytes have arrived."""
        self._expect(-tx)
        self._flip()

    def passed(self, parity: int) -> bool:
        """Has the phase of this parity completed?"""
        return self.phase & 1 != parity & 1

    def _expect(self, tx: int) -> None:
        self.tx += tx
        if abs(self.tx) > MAX_TX:
            raise Finding(
                BARRIER_OVERRUN,
                f"{self.name} counts {self.tx} bytes in phase {self.phase}, the limit is {MAX_TX}",
                {"barrier": self.name, "bytes": self.tx, "limit": MAX_TX, "phase": self.phase},
            )

    def _flip(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.count
            last = self.arrived[-1] if self.arrived else None
            self.arrived.clear()
            if self.on_flip is not None:
                self.on_flip(last)

    def due(self) -> BarrierState:
        """What the phase at hand waits for."""
        return BarrierState(name=self.name, phase=self.phase, arrivals=self.pending, bytes=self.tx)

    def describe(self) -> str:
        """Phase, arrivals and bytes still due, for a deadlock report."""
        due = f"{self.pending} of {self.count} arrivals due"
        if self.tx > 0:
            due += f", {self.tx} bytes due"
        elif self.tx < 0:
            due += f", {-self.tx} bytes more than expected"
        return f"phase {self.phase}: {due}"


def _once(arrivals: list[Origin], what: str) -> tuple[Related, ...]:
    made = {origin.place: origin for origin in arrivals}
    return tuple(origin.related(what) for origin in made.values())


@dataclass(slots=True)
class HardwareBarrier:
    """A named, CTA or cluster barrier: generations of ``threads`` arrivals.

    ``split`` barriers pair every arrival of a unit with a wait (barrier.cluster).
    """

    name: str
    threads: int
    split: bool = False
    arrived: int = 0
    generation: int = 0
    joined: dict[int, int] = field(default_factory=dict)
    """Generation in which each unit arrived last, by the unit's identity."""
    origins: list[Origin] = field(default_factory=list)
    """The arrivals of the generation at hand."""
    clock: Any = 0
    """What those who have arrived know."""

    def arrive(self, unit: int, threads: int, by: Origin | None = None) -> None:
        """A unit's threads arrive."""
        if self.split and unit in self.joined:
            raise Finding(
                BARRIER_PAIRING,
                f"a unit arrives at barrier {self.name} twice without waiting in between",
                {"barrier": self.name},
            )
        self.joined[unit] = self.generation
        self.arrived += threads
        if by is not None:
            self.origins.append(by)
        if self.arrived > self.threads:
            raise Finding(
                BARRIER_OVERRUN,
                f"barrier {self.name} gets {self.arrived} arrivals, it counts {self.threads}",
                {"barrier": self.name, "count": self.threads, "arrived": self.arrived},
                related=self.arrivals(),
            )
        if self.arrived == self.threads:
            self.arrived = 0
            self.generation += 1
            self.origins.clear()

    def awaited(self, unit: int) -> int:
        """The generation that a unit waits for: the one in which it arrived."""
        if unit not in self.joined:
            raise Finding(
                BARRIER_PAIRING,
                f"a unit waits at barrier {self.name} without having arrived",
                {"barrier": self.name},
            )
        return self.joined.pop(unit)

    def arrivals(self) -> tuple[Related, ...]:
        """Where those of the generation at hand were made, each place once."""
        return _once(self.origins, f"arrival at barrier {self.name}")

    def due(self) -> BarrierState:
        """What the generation at hand waits for, in threads."""
        threads = self.threads - self.arrived
        return BarrierState(name=self.name, phase=self.generation, arrivals=threads, bytes=0)

    def describe(self) -> str:
        """Arrivals so far, for a deadlock report."""
        return f"generation {self.generation}: {self.arrived} of {self.threads} threads arrived"
