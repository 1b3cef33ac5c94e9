"""What the judge is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.judge.candidate import Candidate
from cake.workloads import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that the child gets: to start, to build one case, to run one family, to time one
    case. A request that takes longer is a hang."""

    start: float = 60.0
    build: float = 120.0
    run: float = 60.0
    time: float = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPlan:
    """How to time. ``baseline`` is a name of the contract's ``baselines``; the inputs are
    ``contents`` draws of ``family``; ``checked`` random samples have their outputs compared with
    the reference."""

    baseline: str | None = None
    family: str = "normal"
    warmup: int = 10
    samples: int = 60
    contents: int = 2
    checked: int = 2

    def __post_init__(self) -> None:
        if min(self.warmup, self.samples) < 1 or self.contents < 2 or self.checked < 0:
            raise ValueError(f"{self}: warmup and samples are at least 1, contents at least 2")


@dataclass(frozen=True, slots=True, kw_only=True)
class Evaluation:
    """What to judge: ``candidate`` on ``cases`` of ``workload``.

    ``families`` are input families (all of the contract if empty); ``plugins`` modules that
    register runners in the child; ``max_rows`` bounds the rows compared per output (None: as many
    as the reference computes in a second or two).
    ``seed`` is for replays: it is otherwise drawn after the build, case by case. ``timing`` asks
    for times of the cases that are correct.
    """

    workload: str
    candidate: Candidate
    cases: tuple[Case, ...]
    device: str = "cpu"
    families: tuple[str, ...] = ()
    plugins: tuple[str, ...] = ()
    max_rows: int | None = None
    seed: int | None = None
    timing: TimingPlan | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if not self.cases:
            raise ValueError(f"{self.workload}: no cases to judge")
