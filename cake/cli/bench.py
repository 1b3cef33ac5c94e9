"""`cake bench`: how fast a schedule is on this machine's GPU, beside a baseline."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from cake.cli.judging import candidate, finish, judged, plugins, runner_option
from cake.cli.options import cake_command, schedule_options
from cake.cli.output import Output
from cake.cli.status import Status
from cake.cli.workload import (
    cases_of,
    contract_of,
    dtype_option,
    set_option,
    shape_option,
    shape_text,
    workload_option,
)
from cake.judge import Evaluation, Summary, TimingPlan, Verdict

_FAMILY = "normal"


@cake_command("bench")
@schedule_options
@runner_option
@workload_option(required=True)
@shape_option
@set_option
@dtype_option
@click.option("--baseline", help="What to time beside it: a baseline of the contract, or none.")
@click.option("--samples", type=click.IntRange(min=1), default=60, show_default=True)
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
    samples: int,
) -> Status:
    """Time a schedule against a baseline on this machine's GPU.

    The result is checked before and while it is timed. Candidate and baseline take turns, each
    after the L2 cache was flushed; times are medians with quartiles. Without --shape or --set: the
    contract's headline shapes.
    """
    contract = contract_of(workload)
    if baseline not in (None, "none", *contract.baselines):
        known = ", ".join(contract.baselines)
        raise click.UsageError(f"--baseline: {workload} has {known}, not {baseline}")
    chosen = contract.baselines[0] if baseline is None else baseline
    cases = cases_of(contract, shapes, dtype, shape_set or ("headline" if not shapes else None))
    made = candidate(file, runner, meta, target)
    verdict = judged(
        out,
        Evaluation(
            workload=workload,
            candidate=made,
            cases=cases,
            device="cuda",
            families=(_FAMILY,),
            plugins=plugins(made),
            timing=TimingPlan(baseline=None if chosen == "none" else chosen, samples=samples),
        ),
    )
    _print(out, verdict)
    return finish(out, verdict)


def _print(out: Output, verdict: Verdict) -> None:
    rows = []
    for timing in verdict.timings:
        speedup = "-" if timing.speedup is None else f"{timing.speedup:.3f}"
        rows.append(
            (
                shape_text(timing.case.shape),
                timing.case.dtype,
                _milliseconds(timing.candidate),
                timing.baseline_name or "-",
                _milliseconds(timing.baseline) if timing.baseline else "-",
                speedup,
            )
        )
    out.table(("shape", "dtype", "ms", "baseline", "ms", "speed-up"), rows)
    for timing in verdict.timings:
        if timing.detail:
            out.line(f"{shape_text(timing.case.shape)}: {timing.detail}")


def _milliseconds(times: Summary) -> str:
    """The median with the quartiles around it."""
    return f"{times.median:.4f} ({times.q1:.4f} to {times.q3:.4f})"
