"""The fate of one mutant: refused by the language, by a rule, by the simulator, or alive."""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from benchmarks.verifier.layers import complete, errors, layer
from benchmarks.verifier.mutants import Mutant
from benchmarks.verifier.partners import partner_lines
from benchmarks.verifier.subjects import Subject, subject
from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.kernels import launchable, poisoned, simulate_schedule
from cake.lang.elaborate import parse
from cake.workloads import Problem, compare, generate

ORDERS = ("late", "early", "random")
"""The adversaries on the first problem of a schedule; each with another seed."""

OTHER_ORDERS = ("late-newest",)
"""The adversaries on its other problems, which differ in sizes."""

MAX_SECONDS = 20.0
"""Processor time for one mutant. A mutant that needs more is counted as alive (``timeout``)."""


class OutOfTime(Exception):
    """A mutant took longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of a mutant.

    ``layer``: ``language``, ``L0``, ``L1``, ``L2``, ``simulator``, ``survivor``,
    ``timeout`` or ``crash`` (an exception that is no finding).
    ``code`` is that of the first finding (``value`` for wrong results). ``localised`` says whether
    a place that the first finding shows is a mutated statement or its partner.
    """

    key: str
    subject: str
    operator: str
    equivalent: str | None
    layer: str
    code: str
    message: str
    verdict: str
    localised: bool | None
    diff: str
    seconds: float

    def record(self) -> dict[str, Any]:
        """The fate as plain data."""
        return asdict(self)


STATIC = ("language", "L0", "L1", "L2")
"""Layers that need no run of the kernel."""


def judge(mutant: Mutant) -> Fate:
    """Put a mutant through all layers until one refuses it."""
    began = time.perf_counter()
    try:
        with time_limit(MAX_SECONDS):
            found = _static(mutant) or _simulated(mutant, subject(mutant.subject))
    except OutOfTime:
        found = _Found("timeout", "", f"more than {MAX_SECONDS:g} s", "unknown", None)
    except Exception as e:
        # Nothing that a schedule says may make a layer fail; the journal shows whatever does.
        found = _Found("crash", type(e).__name__, str(e), "unknown", None)
    return Fate(
        key=mutant.key,
        subject=mutant.subject,
        operator=mutant.operator,
        equivalent=mutant.equivalent,
        layer=found.layer,
        code=found.code,
        message=found.message,
        verdict=found.verdict,
        localised=found.localised,
        diff=mutant.diff(),
        seconds=round(time.perf_counter() - began, 2),
    )


@dataclass(frozen=True, slots=True)
class _Found:
    layer: str
    code: str
    message: str
    verdict: str
    localised: bool | None


def _static(mutant: Mutant) -> _Found | None:
    """The first finding of the language or of the verifier."""
    parsed = parse(mutant.text, mutant.subject)
    if not parsed.ok:
        first = next(d for d in parsed.diagnostics if d.severity == "error")
        return _Found("language", first.code, first.message, "refused", _localised(mutant, first))
    for program in parsed.programs:
        found = errors(program)
        if found:
            first = found[0]
            return _Found(
                layer(first.code),
                first.code,
                first.message,
                "rejected",
                any(_localised(mutant, d) for d in found),
            )
    return None


def _localised(mutant: Mutant, d: Diagnostic) -> bool:
    """Whether a place of a finding is a mutated statement or a partner of one."""
    program = parse(mutant.original, mutant.subject).programs[mutant.program]
    near = partner_lines(program, mutant.lines)
    spans = [d.span, *(r.span for r in d.related)]
    return any(near & mutant.original_lines(s.line) for s in spans if s is not None)


def _simulated(mutant: Mutant, origin: Subject) -> _Found:
    """The first finding or wrong value over all problems and adversaries."""
    programs = parse(mutant.text, mutant.subject).programs
    verdict = "accepted" if all(complete(p) for p in programs) else "incomplete"
    for number, instance in enumerate(origin.problems()):
        if launchable(programs, instance):
            continue  # a mutated guard may refuse a problem
        for seed, order in enumerate(OTHER_ORDERS if number else ORDERS):
            wrong = trial(programs, instance, order, seed)
            if wrong is not None:
                return _Found("simulator", *wrong, verdict, None)
    return _Found("survivor", "", "", verdict, None)


def trial(
    programs: Sequence[Program], instance: Problem, order: str, seed: int
) -> tuple[str, str] | None:
    """Code and message of what one simulated run gets wrong, None if nothing."""
    contract, shape = instance.contract, {**instance.parameters, **instance.dims}
    inputs = generate(contract, shape, instance.dtype, "normal", 7)
    outputs = {
        t.name: poisoned(instance.shape_of(t.name), instance.dtype_of(t.name))
        for t in contract.tensors
        if not t.is_input
    }
    findings = simulate_schedule(programs, instance, {**inputs, **outputs}, order=order, seed=seed)
    if findings:
        return findings[0].code, findings[0].message
    result = compare(contract, shape, instance.dtype, inputs, outputs)
    return None if result.ok else ("value", result.detail)


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise :class:`OutOfTime` in the main thread after so much time of its processor.

    Not of the clock: what else the machine does is to make no difference.
    """

    def over(number: int, frame: FrameType | None) -> None:
        raise OutOfTime

    before = signal.signal(signal.SIGPROF, over)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
