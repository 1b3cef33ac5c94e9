"""What a class of the self-test consists of, and how its twins are run."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from cake.judge import (
    Candidate,
    Evaluation,
    JudgeUnavailable,
    Limits,
    TimingPlan,
    Verdict,
    cuda_runner,
    judge,
    python_runner,
)
from cake.workloads import Case

CASE = Case(shape={"M": 4, "N": 64}, dtype="f32")
LIMITS = Limits(build=60.0, run=20.0, time=60.0, memory_bytes=4 << 30)
PLAN = TimingPlan(warmup=2, samples=12, checked=12)
"""Every sample is checked: a self-test must not depend on luck."""

_UNAVAILABLE = "the judge cannot work here"
_PLUGINS = {"python": python_runner.PLUGIN, "cuda": cuda_runner.PLUGIN}


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a twin: whether the judge objected, and what it said."""

    caught: bool
    evidence: str


Trial = Callable[[], Outcome]


@dataclass(frozen=True, slots=True, kw_only=True)
class IntegrityClass:
    """A class of cheating or accident. ``caught_by`` says what in the judge catches it; the
    evidence of every cheat has to match the expression ``because``, its own if there is one for
    each. ``timed``: nothing may run beside
    it."""

    name: str
    description: str
    caught_by: str
    because: str | Mapping[str, str]
    cheats: Mapping[str, Trial]
    honest: Trial
    device: Literal["cpu", "cuda"] = "cpu"
    timed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """One twin that was run. ``ok``: a cheat was caught for its reason, an honest one passed.
    ``caught_by`` is what the class names as its defence."""

    name: str
    caught_by: str
    twin: str
    ok: bool
    outcome: Outcome
    seconds: float


def run(each: IntegrityClass) -> Iterator[Report]:
    """The reports of all twins of a class, cheats first."""
    for twin, trial in each.cheats.items():
        outcome, seconds = _tried(trial)
        because = each.because if isinstance(each.because, str) else each.because[twin]
        ok = outcome.caught and not outcome.evidence.startswith(_UNAVAILABLE)
        ok = ok and re.search(because, outcome.evidence) is not None
        yield _report(each, twin, ok, outcome, seconds)
    outcome, seconds = _tried(each.honest)
    yield _report(each, "honest", not outcome.caught, outcome, seconds)


def _report(each: IntegrityClass, twin: str, ok: bool, outcome: Outcome, seconds: float) -> Report:
    return Report(
        name=each.name,
        caught_by=each.caught_by,
        twin=twin,
        ok=ok,
        outcome=outcome,
        seconds=seconds,
    )


def _tried(trial: Trial) -> tuple[Outcome, float]:
    start = time.monotonic()
    try:
        outcome = trial()
    except JudgeUnavailable as reason:
        # Neither a cheat that was caught nor an honest one that passed.
        outcome = Outcome(caught=True, evidence=f"{_UNAVAILABLE}: {reason}")
    return outcome, time.monotonic() - start


def evaluation(
    text: str,
    *,
    runner: str = "python",
    workload: str = "softmax",
    cases: tuple[Case, ...] = (CASE,),
    families: tuple[str, ...] = ("normal",),
    timing: TimingPlan | None = None,
    limits: Limits = LIMITS,
) -> Evaluation:
    """The request to judge a twin: a Python module on the CPU, a CUDA source on the GPU."""
    return Evaluation(
        workload=workload,
        candidate=Candidate(runner=runner, entry="twin", path=f"twin.{runner}", text=text),
        cases=cases,
        device="cuda" if runner == "cuda" else "cpu",
        families=families,
        plugins=(_PLUGINS[runner],),
        timing=timing,
        limits=limits,
    )


def judged(request: Evaluation) -> Trial:
    """The trial that asks for a verdict: anything but ``passed`` counts as caught."""

    def trial() -> Outcome:
        return outcome_of(judge(request))

    return trial


def outcome_of(verdict: Verdict) -> Outcome:
    """The verdict in short."""
    first = verdict.detail.strip().splitlines()[0] if verdict.detail.strip() else ""
    text = f"{verdict.status}: {first}" if first else verdict.status
    return Outcome(caught=verdict.status != "passed", evidence=text)
