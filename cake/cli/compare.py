"""`cake compare`: is A faster than B, by how much, how sure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from cake.cli.judging import candidate, finish, judged, plugins, runner_option
from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.cli.storing import keep, opened, store_option
from cake.cli.times import answer, print_times
from cake.cli.workload import (
    cases_of,
    contract_of,
    dtype_option,
    set_option,
    shape_option,
    shape_text,
    workload_option,
)
from cake.judge import Candidate, Evaluation, TimingPlan, TimingResult
from cake.judge.statistics import Interval, compare_intervals, noise_floor


@cake_command("compare")
@click.argument("first", metavar="A")
@click.argument("second", metavar="B")
@runner_option
@workload_option(required=False)
@shape_option
@set_option
@dtype_option
@click.option("--device", type=click.Choice(("cpu", "cuda")), default="cuda", show_default=True)
@click.option("--samples", type=click.IntRange(min=1), default=60, show_default=True)
@store_option
def command(
    out: Output,
    first: str,
    second: str,
    runner: str | None,
    workload: str | None,
    shapes: tuple[str, ...],
    shape_set: str | None,
    dtype: str | None,
    device: str,
    samples: int,
    folder: Path | None,
) -> Status:
    """Is A faster than B, by how much, and how sure is that?

    A and B are numbers of stored verdicts with times against the same baseline, or two files, which
    are then judged and timed side by side: give --workload, and --shape or --set.
    """
    stored = [name.isdigit() for name in (first, second)]
    if all(stored):
        return _stored(out, int(first), int(second), folder)
    if any(stored):
        raise click.UsageError("compare two stored verdicts or two files, not one of each")
    if workload is None:
        raise click.UsageError("files are compared on a --workload")
    one, other = (candidate(file, runner, {}, None) for file in (first, second))
    request = Evaluation(
        workload=workload,
        candidate=one,
        cases=cases_of(contract_of(workload), shapes, dtype, shape_set),
        device=device,
        families=("normal",),
        plugins=plugins(one, other),
        timing=TimingPlan(rival=other, samples=samples, processes=2, noise=device == "cuda"),
    )
    return _files(out, request, one, other, folder)


def _files(
    out: Output, request: Evaluation, one: Candidate, other: Candidate, folder: Path | None
) -> Status:
    """Judge both, time them side by side, answer."""
    # Neither is worth a time unless it is right; the second of them is judged without one.
    verdict = judged(out, replace(request, candidate=other, timing=None))
    if verdict.status != "passed":
        return finish(out, verdict)
    verdict = judged(out, request)
    print_times(out, verdict)
    for timing in verdict.timings:
        _say(out, timing, timing.ratio, noise_floor(timing.same), _names(one, other))
    keep(out, folder, request, verdict)
    return finish(out, verdict)


def _names(one: Candidate, other: Candidate) -> tuple[str, str]:
    same = one.entry == other.entry
    return (one.path, other.path) if same else (one.entry, other.entry)


def _stored(out: Output, first: int, second: int, folder: Path | None) -> Status:
    with opened(folder) as store:
        (one, left), (other, right) = (store.get(number) for number in (first, second))
    if one.workload != other.workload or one.device != other.device:
        raise click.UsageError(
            f"verdict {first} is about {one.workload} on {one.device}, "
            f"{second} about {other.workload} on {other.device}"
        )
    names = f"{one.candidate.entry} ({first})", f"{other.candidate.entry} ({second})"
    entries: list[dict[str, Any]] = []
    for timing in left.timings:
        match = next((t for t in right.timings if _comparable(t, timing)), None)
        if match is None:
            continue
        ratio = compare_intervals(timing.blocks(), match.blocks())
        noise = max(noise_floor(timing.same), noise_floor(match.same))
        _say(out, timing, ratio, noise, names)
        entries.append(_entry(timing, ratio))
    if not entries:
        raise click.UsageError(
            f"verdicts {first} and {second} have no shape timed against the same baseline by the "
            "same clock"
        )
    return out.finish(Status.ACCEPTED, {"ratios": entries})


def _comparable(one: TimingResult, other: TimingResult) -> bool:
    """Both sides of a ratio have to be measured in the same way."""
    return (
        one.case == other.case
        and one.clock == other.clock
        and one.baseline_name == other.baseline_name != ""
        and bool(one.baseline_ms and other.baseline_ms)
    )


def _entry(timing: TimingResult, ratio: Interval | None) -> dict[str, Any]:
    ends = {} if ratio is None else {"ratio": ratio.ratio, "low": ratio.low, "high": ratio.high}
    return {"shape": shape_text(timing.case.shape), "dtype": timing.case.dtype, **ends}


def _say(
    out: Output,
    timing: TimingResult,
    ratio: Interval | None,
    noise: float,
    names: tuple[str, str],
) -> None:
    out.heading(f"{timing.case.label()}: {answer(ratio, noise, *names)}")
