"""`cake evolve`: the search, its progress, and its result."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from cake.cli.options import cake_command
from cake.cli.output import Advance, Output
from cake.cli.signals import interruption
from cake.cli.sources import read
from cake.cli.status import Status
from cake.cli.workload import cases_of, contract_of, dtype_option, shape_option, usage_errors
from cake.cost import UnknownPart
from cake.evolve import Budget, EvolveConfig, EvolveResult, Progress, Store, resume, run
from cake.evolve.ranking import ranked
from cake.report import write_report
from cake.targets import names
from cake.workloads import names as workload_names

TOP = 5
"""Candidates in the table of the best."""

MOST_WORKERS = 16
"""More take memory and gain nothing: few candidates are evaluated at a time."""

_PHASES = {"screen": "estimating", "evaluate": "evaluating", "confirm": "confirming"}

_FIXED = frozenset(
    ["workload", "target", "shapes", "dtype", "files", "device", "part", "baseline", "seed", "out"]
)
"""Options that a run is started with and keeps."""


@cake_command("evolve")
@click.argument(
    "workload", required=False, type=click.Choice(workload_names()), metavar="[WORKLOAD]"
)
@click.option("--target", type=click.Choice(names()), default="sm_90a", show_default=True)
@shape_option
@dtype_option
@click.option("--file", "files", multiple=True, help="A schedule file beside the shipped ones.")
@click.option(
    "--device",
    type=click.Choice(("auto", "cpu", "cuda")),
    default="auto",
    show_default=True,
    help="Measure on the GPU, or rank by estimate on the CPU.",
)
@click.option("--part", help="The device of the target that estimates are for.")
@click.option("--baseline", help="A baseline of the contract to time beside each candidate.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option(
    "--workers",
    type=click.IntRange(min=1),
    default=min(os.cpu_count() or 1, MOST_WORKERS),
    show_default="one for each core",
    help="Processes that estimate, simulate and build.",
)
@click.option("--budget-evaluations", type=click.IntRange(min=1), help="Most evaluations.")
@click.option("--budget-seconds", type=click.FloatRange(min=1), help="Most seconds.")
@click.option("--out", "out_", type=click.Path(path_type=Path), help="A new folder for the run.")
@click.option("--resume", "folder", type=click.Path(path_type=Path), help="Go on with this run.")
def command(out: Output, folder: Path | None, workers: int, **options: Any) -> Status:
    """Search for the fastest schedule of a workload.

    Structural variants times meta parameters: every point is checked and estimated; the most
    promising ones are simulated, compared with the reference, built, and measured where there is a
    GPU of the target. Everything is kept in the run's folder. A run that was stopped or killed goes
    on with --resume; a larger budget lets a finished one go on.
    """
    evaluations, seconds = options.pop("budget_evaluations"), options.pop("budget_seconds")
    if folder is not None:
        _only_new_budget()
        result = _resumed(out, folder, workers, evaluations, seconds)
    else:
        budget = _budget(Budget(), evaluations, seconds)
        result = _started(out, _config(budget, workers, **options))
    return _finish(out, result)


command.epilog = f"Workloads: {', '.join(workload_names())}."


def _budget(base: Budget, evaluations: int | None, seconds: float | None) -> Budget:
    """``base`` with what the command line sets."""
    if evaluations is not None:
        base = replace(base, max_evaluations=evaluations)
    return base if seconds is None else replace(base, max_seconds=seconds)


def _only_new_budget() -> None:
    """A run keeps what it was started with; only workers and budget may change."""
    context = click.get_current_context()
    for parameter in context.command.params:
        name = parameter.name or ""
        given = context.get_parameter_source(name) is ParameterSource.COMMANDLINE
        if given and name.rstrip("_") in _FIXED:
            shown = parameter.opts[0] if parameter.param_type_name == "option" else "WORKLOAD"
            raise click.UsageError(f"{shown} does not go with --resume: the run has it already")


def _config(
    budget: Budget,
    workers: int,
    *,
    workload: str | None,
    shapes: tuple[str, ...],
    dtype: str | None,
    files: tuple[str, ...],
    out_: Path | None,
    **others: Any,
) -> EvolveConfig:
    if workload is None:
        raise click.UsageError(f"name a workload ({', '.join(workload_names())}), or --resume DIR")
    contract = contract_of(workload)
    if others["baseline"] not in (None, *contract.baselines):
        known = ", ".join(contract.baselines)
        raise click.UsageError(f"--baseline: {workload} has {known}, not {others['baseline']}")
    if len(shapes) > 1:
        raise click.UsageError("a search takes one --shape")
    case = None
    if shapes or dtype:
        (case,) = cases_of(contract, shapes, dtype, None if shapes else "headline")[:1]
    for file in files:
        read(file)  # what is wrong with a file is said before the run's folder is made
    return EvolveConfig(
        workload=workload,
        case=case,
        files=tuple(map(Path, files)),
        out=out_,
        budget=budget,
        workers=workers,
        **others,
    )


def _started(out: Output, config: EvolveConfig) -> EvolveResult:
    try:
        with usage_errors(), _shown(out) as progress:
            return run(config, progress=progress)
    except UnknownPart as error:
        raise click.UsageError(f"--part: {error}") from None


def _resumed(
    out: Output, folder: Path, workers: int, evaluations: int | None, seconds: float | None
) -> EvolveResult:
    budget = None
    if evaluations is not None or seconds is not None:
        with Store.open(folder, writable=False) as store:
            budget = _budget(store.budget, evaluations, seconds)
    with _shown(out) as progress:
        return resume(folder, budget=budget, workers=workers, progress=progress)


@contextmanager
def _shown(out: Output) -> Iterator[Any]:
    """A callback that moves the progress bar."""
    with out.progress("estimating") as advance:
        yield lambda step: _advance(advance, step)


def _advance(advance: Advance, step: Progress) -> None:
    best = "" if step.best_seconds is None else f", best {step.best_seconds * 1e3:.4g} ms"
    advance(_PHASES[step.phase] + best, steps=0, done=step.done, total=step.total)


def _finish(out: Output, result: EvolveResult) -> Status:
    """The best candidates, where all of them ended, and where everything is."""
    top = _top(result.folder)
    report = write_report(result.folder)
    out.table(("candidate", "variant", "ms", "", "meta"), [tuple(row.values()) for row in top])
    ended = ", ".join(f"{count} {name}" for name, count in result.funnel.items() if count)
    out.line(f"\ncandidates: {ended}")
    for path in (*result.files, report):
        out.line(f"wrote {path}")
    out.heading(result.message)
    status = Status.REJECTED if result.best is None else Status.ACCEPTED
    status = interruption() if result.stopped == "interrupted" else status
    entries = {
        "folder": str(result.folder),
        "stopped": result.stopped,
        "message": result.message,
        "best": None if result.best is None else asdict(result.best),
        "top": top,
        "funnel": dict(result.funnel),
        "evaluations": result.evaluations,
        "seconds": result.seconds,
        "files": [str(path) for path in result.files],
        "report": str(report),
    }
    return out.finish(status, entries)


def _top(folder: Path) -> list[dict[str, Any]]:
    """The best candidates, in order."""
    rows = []
    with Store.open(folder, writable=False) as store:
        for evaluation in ranked(store)[:TOP]:
            row = store.candidate(evaluation.candidate)
            assert evaluation.seconds is not None  # what is ranked has passed
            rows.append(
                {
                    "candidate": row.id,
                    "variant": row.variant,
                    "ms": f"{evaluation.seconds * 1e3:.4g}",
                    "kind": "estimated" if evaluation.measured is None else "measured",
                    "meta": " ".join(f"{name}={value}" for name, value in row.meta.items()),
                }
            )
    return rows
