"""`cake judge`: whether a schedule computes what a workload asks for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from cake.cli.judging import candidate, finish, judged, plugins, runner_option
from cake.cli.options import cake_command, schedule_options
from cake.cli.output import Output
from cake.cli.status import Status
from cake.cli.storing import keep, store_option
from cake.cli.workload import (
    cases_of,
    contract_of,
    dtype_option,
    family_option,
    set_option,
    shape_option,
    shape_text,
    workload_option,
)
from cake.judge import Evaluation, Verdict
from cake.judge.candidate import CONFINED


@cake_command("judge")
@schedule_options
@runner_option
@workload_option(required=True)
@shape_option
@set_option
@dtype_option
@family_option
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cpu", show_default=True)
@click.option("--keep", "kept", is_flag=True, help="Keep the verdict for `cake replay`.")
@store_option
@click.option("--seed", type=click.IntRange(min=0), help="Repeat a run with its inputs.")
def command(
    out: Output,
    file: str,
    meta: Mapping[str, Any],
    target: str | None,
    runner: str | None,
    workload: str,
    shapes: tuple[str, ...],
    shape_set: str | None,
    dtype: str | None,
    families: tuple[str, ...],
    device: str,
    kept: bool,
    folder: Path | None,
    seed: int | None,
) -> Status:
    """Decide whether a kernel computes what a workload asks for.

    A schedule, a CUDA source or a Python module runs in a process of its own, on poisoned and
    guarded buffers, with inputs that it cannot foresee: all families of the contract, or those
    given. On the CPU a schedule is simulated.
    """
    contract = contract_of(workload)
    made = candidate(file, runner, meta, target)
    request = Evaluation(
        workload=workload,
        candidate=made,
        cases=cases_of(contract, shapes, dtype, shape_set),
        device=device,
        families=families,
        plugins=plugins(made),
        seed=seed,
    )
    verdict = judged(out, request)
    _print(out, verdict)
    if kept:
        keep(out, folder, request, verdict)
    return finish(out, verdict)


def _print(out: Output, verdict: Verdict) -> None:
    rows = []
    for result in verdict.results:
        ulps = [t.max_ulp for t in result.comparison.tensors] if result.comparison else []
        error = f"{max(ulps):.3g}" if ulps else "-"
        shape = shape_text(result.case.shape)
        rows.append((shape, result.case.dtype, result.family or "-", error, result.status))
    out.table(("shape", "dtype", "family", "ulp", "status"), rows)
    if verdict.runner in CONFINED:
        out.line(f"isolation: {verdict.environment.get('isolation', 'unknown')}")
