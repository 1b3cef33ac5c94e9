"""What a search is asked to do, what it says on the way, and what it returns."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from cake.evolve.findings import BAD_BUDGET, error
from cake.workloads import Case

Stopped = Literal["exhausted", "evaluations", "seconds", "interrupted"]
"""Why a search ended: everything was evaluated, a budget was used up, or Ctrl-C."""

Phase = Literal["screen", "evaluate", "confirm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Limits of a run, over all its sessions together: finished evaluations and seconds."""

    max_evaluations: int = 48
    max_seconds: float = 120.0

    def __post_init__(self) -> None:
        if self.max_evaluations < 1 or not self.max_seconds > 0:
            raise error(
                BAD_BUDGET,
                f"a budget of {self.max_evaluations} evaluations and {self.max_seconds} seconds; "
                "both have to be positive",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveConfig:
    """A new search.

    ``case`` is the shape to optimise for (the contract's first headline shape without).
    ``files`` are schedule files beside the shipped ones, or instead of them with
    ``shipped=False``. ``device``: ``cuda`` measures with the judge, ``cpu`` ranks by estimate,
    ``auto`` measures if a GPU of the target is there. ``part`` is the device that estimates are
    for. ``baseline`` is one of the contract's, timed beside each candidate. ``keep`` is the share
    of candidates that the estimate leaves. ``out`` is the run's folder.
    """

    workload: str
    target: str
    case: Case | None = None
    files: tuple[Path, ...] = ()
    shipped: bool = True
    out: Path | None = None
    device: Literal["auto", "cpu", "cuda"] = "auto"
    part: str | None = None
    baseline: str | None = None
    seed: int = 0
    keep: float = 0.25
    budget: Budget = Budget()
    workers: int = 2

    def __post_init__(self) -> None:
        if not 0 < self.keep <= 1 or self.workers < 1:
            raise error(
                BAD_BUDGET,
                f"keep = {self.keep} has to be above 0 and at most 1, workers = {self.workers} "
                "at least 1",
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """One step of a search: ``done`` of ``total`` of a phase. ``best_seconds`` is the best time so
    far (measured, or estimated without a GPU); ``message`` says what has just happened."""

    phase: Phase
    done: int
    total: int
    best_seconds: float | None
    message: str


ProgressCallback = Callable[[Progress], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Best:
    """The best candidate: ``seconds`` is measured if ``measured``, else an estimate.

    ``confirmed``: it also passed all input families of the contract.
    """

    candidate: int
    variant: str
    meta: Mapping[str, bool | int | float | str]
    digest: str
    seconds: float
    measured: bool
    confirmed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EvolveResult:
    """The end of a session.

    ``funnel`` counts candidates by where they ended, in order. ``files`` are what was written.
    ``seconds`` is the time of all sessions together. ``message`` is a sentence for people.
    """

    folder: Path
    best: Best | None
    evaluations: int
    funnel: Mapping[str, int]
    seconds: float
    stopped: Stopped
    files: tuple[Path, ...]
    message: str
