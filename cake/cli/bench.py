"""`cake bench`: how fast a schedule is on this machine's GPU, beside a baseline."""

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
from cake.cli.times import print_times
from cake.cli.workload import (
    cases_of,
    contract_of,
    dtype_option,
    set_option,
    shape_option,
    workload_option,
)
from cake.judge import Evaluation, TimingPlan

_FAMILY = "normal"


@cake_command("bench")
@schedule_options
@runner_option
@workload_option(required=True)
@shape_option
@set_option
@dtype_option
@click.option("--baseline", help="What to time beside it: a baseline of the contract, or none.")
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cuda", show_default=True)
@click.option("--samples", type=click.IntRange(min=1), default=60, show_default=True)
@click.option("--processes", type=click.IntRange(min=1), default=2, show_default=True)
@store_option
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
    baseline: str | None,
    device: str,
    samples: int,
    processes: int,
    folder: Path | None,
) -> Status:
    """Time a kernel against a baseline on this machine's GPU.

    The result is checked before and while it is timed. Candidate and baseline take turns, each
    after the L2 cache was flushed, in fresh processes in which they change places; times are
    medians with quartiles, speed-ups have an interval, and a win lies above the noise of the
    baseline beside itself. Without --shape or --set: the contract's headline shapes.
    """
    contract = contract_of(workload)
    if baseline not in (None, "none", *contract.baselines):
        known = ", ".join(contract.baselines)
        raise click.UsageError(f"--baseline: {workload} has {known}, not {baseline}")
    chosen = contract.baselines[0] if baseline is None else baseline
    cases = cases_of(contract, shapes, dtype, shape_set or ("headline" if not shapes else None))
    made = candidate(file, runner, meta, target)
    plan = TimingPlan(
        baseline=None if chosen == "none" else chosen,
        samples=samples,
        processes=processes,
        noise=device == "cuda" and chosen != "none",
        columns=device == "cuda",
    )
    request = Evaluation(
        workload=workload,
        candidate=made,
        cases=cases,
        device=device,
        families=(_FAMILY,),
        plugins=plugins(made),
        timing=plan,
    )
    verdict = judged(out, request)
    print_times(out, verdict)
    keep(out, folder, request, verdict)
    return finish(out, verdict)
