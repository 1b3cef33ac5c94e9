"""The fate of one mutant: refused by the language, by a rule, by the simulator, or alive."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from types import FrameType
from typing import Any

from benchmarks.verifier.data_operators import operator
from benchmarks.verifier.layers import complete, errors, layer
from benchmarks.verifier.mutants import Mutant
from benchmarks.verifier.partners import partner_lines
from benchmarks.verifier.subjects import Subject, subject
from cake.codegen.cuda import emit_program
from cake.diag import Diagnostic
from cake.ir.program import Program
from cake.kernels import launchable, poisoned, simulate_schedule
from cake.lang.elaborate import parse
from cake.workloads import Problem, compare, generate

ORDERS = ("late", "random", "late-newest", "early")
"""The adversaries: each problem of a schedule is tried with the next of them."""

MAX_SECONDS = 20.0
"""Processor time for one mutant. A mutant that needs more is counted as alive (``timeout``)."""


_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


class OutOfTime(Exception):
    """A mutant took longer than it may."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What became of a mutant.

    ``layer``: ``language``, ``L0``, ``L1``, ``L2``, ``L4``, ``simulator``, ``survivor``,
    ``timeout`` or ``crash`` (an exception that is no finding). ``equivalent`` is why it means the
    same as the original, where that is decided without a person.
    ``code`` is that of the first finding (``value`` for wrong results). ``localised`` says whether
    a place that a finding of that layer shows is a mutated statement or its partner. ``values``:
    the operator changes what is computed and nothing else.
    """

    key: str
    subject: str
    operator: str
    values: bool
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


STATIC = ("language", "L0", "L1", "L2", "L4")
"""Layers that need no run of the kernel."""


def judge(mutant: Mutant) -> Fate:
    """Put a mutant through all layers until one refuses it."""
    began = time.process_time()
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
        values=operator(mutant.operator).values,
        equivalent=mutant.equivalent or _equivalent(mutant, found),
        layer=found.layer,
        code=found.code,
        message=found.message,
        verdict=found.verdict,
        localised=found.localised,
        diff=mutant.diff(),
        seconds=round(time.process_time() - began, 2),
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
    changed = parsed.programs[mutant.program]
    for program in (changed, *(p for p in parsed.programs if p is not changed)):
        found = errors(program)
        if found:
            first = found[0]
            near = any(_localised(mutant, d) for d in found)
            return _Found(layer(first.code), first.code, first.message, "rejected", near)
    return None


def _localised(mutant: Mutant, d: Diagnostic) -> bool:
    """Whether a place of a finding is a mutated statement or a partner of one."""
    program = parse(mutant.original, mutant.subject).programs[mutant.program]
    near = partner_lines(program, mutant.lines)
    spans = [d.span, *(r.span for r in d.related)]
    return any(near & mutant.original_lines(s.line) for s in spans if s is not None)


def _equivalent(mutant: Mutant, found: _Found) -> str | None:
    """Why a survivor means the same, if its operator or the emitted code says so."""
    if found.layer != "survivor":
        return None
    if _emitted(mutant.original, mutant.subject) == _emitted(mutant.text, mutant.subject):
        return "the emitted CUDA is the same"
    return operator(mutant.operator).only_slack


def _emitted(text: str, name: str) -> list[str]:
    """The CUDA of all programs without comments, which show lines of the source."""
    sources = (emit_program(p).source for p in parse(text, name).programs)
    return [_COMMENT.sub("", source) for source in sources]


def _simulated(mutant: Mutant, origin: Subject) -> _Found:
    """The first finding or wrong value over all problems and adversaries."""
    programs = parse(mutant.text, mutant.subject).programs
    # A mutated guard may refuse a problem. What is equivalent by argument is run once all the same.
    problems = [p for p in origin.problems() if not launchable(programs, p)]
    for seed, instance in enumerate(problems[:1] if mutant.equivalent else problems):
        wrong = trial(programs, instance, ORDERS[seed % len(ORDERS)], seed)
        if wrong is not None:
            return _Found("simulator", *wrong, _verdict(programs), None)
    return _Found("survivor", "", "", _verdict(programs), None)


def _verdict(programs: Sequence[Program]) -> str:
    return "accepted" if all(complete(p) for p in programs) else "incomplete"


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
