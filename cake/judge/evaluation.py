"""What the judge is asked to do."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.judge.candidate import Candidate
from cake.workloads import Case


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Seconds that the child gets: to start, to build one case, to run one family, to time one
    case. A request that takes longer is a hang. ``memory_bytes`` of address space are what a
    confined child may map on the CPU, at most half of the machine's memory."""

    start: float = 60.0
    build: float = 120.0
    run: float = 60.0
    time: float = 120.0
    memory_bytes: int = 16 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingPlan:
    """How to time. Beside the candidate runs ``baseline``, a name of the contract's
    ``baselines``, or ``rival``, another candidate. The inputs are ``contents`` draws of ``family``;
    ``checked`` random samples have their outputs compared with the reference.

    ``samples`` are taken in each of ``processes`` fresh processes, in which the two sides change
    places. ``noise`` asks for an A/A measurement of the baseline, ``columns`` for times on a warm
    L2 and in a CUDA graph and for the host's time per call.
    """

    baseline: str | None = None
    rival: Candidate | None = None
    family: str = "normal"
    warmup: int = 10
    samples: int = 60
    contents: int = 2
    checked: int = 2
    processes: int = 1
    noise: bool = False
    columns: bool = False

    def __post_init__(self) -> None:
        if self.baseline is not None and self.rival is not None:
            raise ValueError("a candidate is timed beside a baseline or a rival, not both")
        if (
            min(self.warmup, self.samples, self.processes) < 1
            or self.contents < 2
            or self.checked < 0
        ):
            raise ValueError(
                f"{self}: warmup, processes and samples are at least 1, contents at least 2"
            )


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
