"""Barriers of the simulator: mbarriers with exact phases, and hardware barriers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from cake.simulate.errors import Finding


@dataclass(slots=True)
class MBarrierState:
    """One mbarrier (PTX ISA, "Phase of the mbarrier object").

    ``phase`` counts completed phases. ``on_flip`` runs when a phase completes.
    """

    name: str
    count: int
    pending: int = -1
    tx: int = 0
    phase: int = 0
    on_flip: Callable[[], None] | None = None

    def __post_init__(self) -> None:
        self.pending = self.count

    def arrive(self, count: int = 1, *, tx: int = 0) -> None:
        """``count`` arrivals, after expecting ``tx`` bytes."""
        self.tx += tx
        self.pending -= count
        if self.pending < 0:
            raise Finding(
                "CK507",
                f"{self.name} gets more than {self.count} arrivals in phase {self.phase}",
                {"barrier": self.name, "count": self.count, "phase": self.phase},
            )
        self._flip()

    def expect_tx(self, tx: int) -> None:
        """``tx`` more bytes are expected."""
        self.tx += tx
        self._flip()

    def complete_tx(self, tx: int) -> None:
        """``tx`` bytes have arrived."""
        self.tx -= tx
        self._flip()

    def passed(self, parity: int) -> bool:
        """Has the phase of this parity completed?"""
        return self.phase & 1 != parity & 1

    def _flip(self) -> None:
        if self.pending == 0 and self.tx == 0:
            self.phase += 1
            self.pending = self.count
            if self.on_flip is not None:
                self.on_flip()

    def describe(self) -> str:
        """Phase, arrivals and bytes still due, for a deadlock report."""
        due = f"{self.pending} of {self.count} arrivals due"
        return f"{self.name} in phase {self.phase} ({due}, {self.tx} bytes due)"


@dataclass(slots=True)
class HardwareBarrier:
    """A named, CTA or cluster barrier: generations of ``threads`` arrivals."""

    name: str
    threads: int
    arrived: int = 0
    generation: int = 0
    joined: dict[int, int] = field(default_factory=dict)
    """Generation in which each unit arrived last, by the unit's identity."""

    def arrive(self, unit: int, threads: int) -> None:
        """A unit's threads arrive."""
        self.joined[unit] = self.generation
        self.arrived += threads
        if self.arrived > self.threads:
            raise Finding(
                "CK507",
                f"barrier {self.name} gets {self.arrived} arrivals, it counts {self.threads}",
                {"barrier": self.name, "count": self.threads, "arrived": self.arrived},
            )
        if self.arrived == self.threads:
            self.arrived = 0
            self.generation += 1

    def passed(self, unit: int) -> bool:
        """Has the generation in which the unit arrived completed?"""
        return self.generation > self.joined.get(unit, -1)
