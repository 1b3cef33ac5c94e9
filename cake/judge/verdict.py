"""The judge's answer. Only the parent process makes verdicts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median, quantiles
from typing import Literal

from cake.judge.clocks import Clocks
from cake.judge.records import RecordError, decode, encode
from cake.judge.statistics import Floats, Interval, block_ratios
from cake.workloads import Case, Comparison

Status = Literal["passed", "refused", "build_failed", "incorrect", "crashed", "hang"]

# From best to worst; a verdict has the worst status of its parts.
SEVERITY: tuple[Status, ...] = (
    "passed",
    "refused",
    "build_failed",
    "incorrect",
    "crashed",
    "hang",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A breach of the rules that no tolerance excuses, seen on one tensor."""

    kind: Literal["input-modified", "guard-overwritten", "unwritten", "nondeterministic"]
    tensor: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseResult:
    """One shape and input family. ``family`` is empty and ``seed`` 0 when the candidate failed
    before it saw inputs; ``comparison`` is absent when there were no outputs to compare."""

    case: Case
    family: str
    seed: int
    status: Status
    detail: str
    findings: tuple[Finding, ...]
    comparison: Comparison | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """Median and quartiles of ``count`` samples, in milliseconds."""

    median: float
    q1: float
    q3: float
    count: int

    @classmethod
    def of(cls, samples: Sequence[float]) -> Summary:
        """Raises ``ValueError`` without samples."""
        if not samples:
            raise ValueError("no samples to summarise")
        q1, q3 = samples[0], samples[0]
        if len(samples) > 1:
            q1, _, q3 = quantiles(samples, n=4, method="inclusive")
        return cls(median=median(samples), q1=q1, q3=q3, count=len(samples))


@dataclass(frozen=True, slots=True, kw_only=True)
class Columns:
    """Other times of one side, medians in milliseconds (``host_us``: microseconds that the host
    spends in a call). None where it cannot be had."""

    warm_ms: float | None = None
    graph_ms: float | None = None
    host_us: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingResult:
    """Times of one shape. ``speedup`` is the median over the sample pairs of baseline time by
    candidate time. ``status`` says whether the outputs of random timed samples were right.

    ``ratio`` is the speed-up with its interval (:mod:`cake.judge.statistics`), ``same`` that of the
    baseline to itself, ``floor_ms`` the physics floor. The samples are kept in their order,
    ``process_samples`` of them in each process.
    """

    case: Case
    clock: str
    candidate: Summary
    baseline_name: str
    baseline: Summary | None
    speedup: float | None
    status: Status
    detail: str
    ratio: Interval | None = None
    same: Interval | None = None
    floor_ms: float | None = None
    columns: Columns | None = None
    baseline_columns: Columns | None = None
    clocks: Clocks | None = None
    candidate_ms: tuple[float, ...] = ()
    baseline_ms: tuple[float, ...] = ()
    process_samples: tuple[int, ...] = ()

    def blocks(self) -> list[Floats]:
        """The log ratios of ABBA blocks, process by process; none without a baseline."""
        found, start = [], 0
        for count in self.process_samples if self.baseline_ms else ():
            part = slice(start, start + count)
            found.append(block_ratios(self.baseline_ms[part], self.candidate_ms[part]))
            start += count
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """Everything that the judge found about one candidate. ``output`` is the end of what the
    child process printed; ``seconds`` is wall time of the whole evaluation."""

    status: Status
    workload: str
    candidate_hash: str
    runner: str
    device: str
    detail: str
    results: tuple[CaseResult, ...]
    timings: tuple[TimingResult, ...]
    environment: Mapping[str, str]
    output: str
    seconds: float

    def to_json(self) -> str:
        """One line of JSON that :meth:`from_json` reads back to an equal verdict."""
        return json.dumps(encode(self), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Verdict:
        """Raises :class:`RecordError` if ``text`` is no verdict."""
        try:
            raw = json.loads(text)
        except ValueError as error:
            raise RecordError(f"not JSON: {error}") from None
        return decode(cls, raw)


def worst(statuses: Sequence[Status]) -> Status:
    """The most severe of ``statuses``; raises ``ValueError`` if there are none."""
    return max(statuses, key=SEVERITY.index)
