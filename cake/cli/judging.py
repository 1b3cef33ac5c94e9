"""What `cake judge` and `cake bench` share: the candidate, the call, the verdict in print."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import click

from cake.cli.findings import JUDGE_UNAVAILABLE, NOT_PASSED, OUTSIDE_DOMAIN
from cake.cli.output import Output
from cake.cli.sources import Text, programs, read
from cake.cli.status import Failure, Status
from cake.cli.workload import shape_text, usage_errors
from cake.diag import Code, Diagnostic
from cake.judge import (
    Candidate,
    CaseResult,
    Evaluation,
    JudgeUnavailable,
    TimingResult,
    Verdict,
    cuda_runner,
    ir_runner,
    python_runner,
)
from cake.judge import judge as pass_verdict
from cake.judge.manifest import with_manifest
from cake.kernels import encode_meta, with_meta
from cake.runtime import driver

F = TypeVar("F", bound=Callable[..., object])

_PLUGINS = {
    ir_runner.RUNNER: ir_runner.PLUGIN,
    cuda_runner.RUNNER: cuda_runner.PLUGIN,
    python_runner.RUNNER: python_runner.PLUGIN,
}


def runner_option(function: F) -> F:
    """``--runner``: what a file holds."""
    option = click.option(
        "--runner",
        type=click.Choice(tuple(_PLUGINS)),
        help="What FILE is: a schedule in Cake IR, a CUDA source (assumed for .cu), or a Python "
        "module with a function run, which is executed in a confined process.",
    )
    return option(function)


def plugins(*candidates: Candidate) -> tuple[str, ...]:
    """The modules that register the runners of ``candidates``."""
    return tuple(dict.fromkeys(_PLUGINS[c.runner] for c in candidates))


def candidate(
    file: str, runner: str | None, meta: Mapping[str, Any], target: str | None
) -> Candidate:
    """The file as a candidate. Raises :class:`Failure` for a schedule that does not elaborate."""
    kind = runner or (cuda_runner.RUNNER if file.endswith(".cu") else ir_runner.RUNNER)
    text = read(file)
    if kind == ir_runner.RUNNER:
        return _schedule(text, meta, target)
    if meta or target:
        raise click.UsageError("--meta and --target are for schedules in Cake IR")
    source = text.text
    beside = Path(file).with_suffix(".json")
    if kind == cuda_runner.RUNNER and file != "-" and beside.is_file():
        source = with_manifest(source, read(str(beside)).text)
    return Candidate(runner=kind, entry=Path(text.file).stem, path=text.file, text=source)


def _schedule(text: Text, meta: Mapping[str, Any], target: str | None) -> Candidate:
    programs(text, meta, target)
    return Candidate(
        runner=ir_runner.RUNNER,
        entry=Path(text.file).stem,
        meta=encode_meta(meta),
        path=text.file,
        text=with_meta(text.text, {}, target),
    )


def judged(out: Output, evaluation: Evaluation) -> Verdict:
    """The judge's verdict. Raises :class:`Failure` where the judge cannot work."""
    if evaluation.device == "cpu" and evaluation.candidate.runner == cuda_runner.RUNNER:
        raise click.UsageError("a CUDA source runs on a GPU alone: --device cuda")
    if evaluation.device == "cuda":
        driver.driver()  # a machine without a GPU is told so before a process is started
    try:
        with usage_errors(), out.progress("judging"):
            return pass_verdict(evaluation)
    except JudgeUnavailable as error:
        raise unavailable(evaluation, error) from None


def unavailable(evaluation: Evaluation, error: JudgeUnavailable) -> Failure:
    """The end of a command whose judge cannot work here."""
    finding = Diagnostic.of(
        JUDGE_UNAVAILABLE,
        f"the judge cannot use device {evaluation.device}: {_first_line(str(error))}",
        facts={"device": evaluation.device, "detail": str(error)},
        helps=("cake doctor says what is missing", "--device cpu judges by simulation"),
    )
    return Failure(Status.ENVIRONMENT, finding)


def finish(out: Output, verdict: Verdict) -> Status:
    """The last line, and the document: the verdict as the judge stores it.

    Problems that the schedule's own guards refuse leave the rest of a verdict as it is: the answer
    is then incomplete, as long as some problem was admitted.
    """
    parts: tuple[CaseResult | TimingResult, ...] = (*verdict.results, *verdict.timings)
    refused = [p for p in parts if p.status == "refused"]
    admitted = [p for p in parts if p.status != "refused"]
    partly = verdict.status == "refused" and bool(admitted)
    findings = tuple(
        _failure(verdict, p, OUTSIDE_DOMAIN if partly else NOT_PASSED)
        for p in parts
        if p.status != "passed"
    )
    out.findings(findings, {})
    if partly:
        problems = len({shape_text(p.case.shape) + p.case.dtype for p in refused})
        number = f"{problems} problem{'s' if problems > 1 else ''}"
        ending = f"passed on {verdict.device}, {number} outside the schedule's domain"
        status = Status.INCOMPLETE
    else:
        ending = f"{verdict.status} on {verdict.device}"
        status = Status.ACCEPTED if verdict.status == "passed" else Status.REJECTED
    out.heading(f"{verdict.workload}: {ending}")
    return out.finish(status, {"verdict": json.loads(verdict.to_json())}, findings)


def _failure(verdict: Verdict, part: CaseResult | TimingResult, code: Code) -> Diagnostic:
    shape = shape_text(part.case.shape)
    where = f"{verdict.workload} {shape} {part.case.dtype}"
    if isinstance(part, CaseResult) and part.family:
        where += f", family {part.family}, seed {part.seed}"
    helps = [line for line in part.detail.splitlines()[1:] if line]
    if part.status == "refused":
        helps.append(f"another schedule may admit it: `cake evolve {verdict.workload}` tries all")
    return Diagnostic.of(
        code,
        f"{part.status} at {where}: {_first_line(part.detail)}",
        facts={"status": part.status, "shape": shape, "dtype": part.case.dtype},
        helps=tuple(helps),
    )


def _first_line(text: str) -> str:
    return text.partition("\n")[0]
