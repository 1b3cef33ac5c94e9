"""Times in print: what `cake bench` and `cake compare` have in common."""

from __future__ import annotations

from math import exp, log
from statistics import fmean

from cake.cli.output import Output
from cake.cli.workload import shape_text
from cake.judge import Columns, Summary, TimingResult, Verdict
from cake.judge.statistics import Interval, is_faster, noise_floor

_HEAD = ("shape", "dtype", "ms", "baseline", "ms", "speed-up", "verdict", "noise", "of floor")
_COLUMNS = ("shape", "side", "warm L2 ms", "graph ms", "host us")


def print_times(out: Output, verdict: Verdict) -> None:
    """All rows, the slow ones first, with what else was measured; never a mean alone."""
    timings = sorted(verdict.timings, key=lambda t: (t.speedup is None, t.speedup or 0.0))
    out.table(_HEAD, [_row(t) for t in timings])
    out.table(_COLUMNS, [row for t in timings for row in _other_times(t)])
    known = [t.speedup for t in timings if t.speedup]
    if len(known) > 1:
        mean = exp(fmean(map(log, known)))
        out.line(f"geometric mean of {len(known)} speed-ups: {mean:.3f}, least {min(known):.3f}")
    for timing in timings:
        if timing.detail:
            out.line(f"{shape_text(timing.case.shape)}: {timing.detail}")
    if timings:
        out.line(f"clock: {timings[0].clock}; {_conditions(timings)}")


def answer(ratio: Interval | None, noise: float, first: str, second: str) -> str:
    """Whether ``first`` is faster than ``second``, by how much, how sure."""
    if ratio is None:
        return f"too few samples to compare {first} and {second}"
    sure = f"{ratio.level:.0%} interval {ratio.low:.3f} to {ratio.high:.3f}, noise {noise:.1%}"
    if is_faster(ratio, noise):
        return f"{first} is faster than {second}: {ratio.ratio:.3f} times as fast ({sure})"
    turned = Interval(ratio=1 / ratio.ratio, low=1 / ratio.high, high=1 / ratio.low)
    if is_faster(turned, noise):
        return f"{first} is slower than {second}: {ratio.ratio:.3f} times as fast ({sure})"
    return f"no difference between {first} and {second} is certain: {ratio.ratio:.3f} ({sure})"


def _row(timing: TimingResult) -> tuple[str, ...]:
    ratio, noise = timing.ratio, noise_floor(timing.same)
    speedup = "-" if timing.speedup is None else f"{timing.speedup:.3f}"
    if ratio is not None:
        speedup = f"{ratio.ratio:.3f} ({ratio.low:.3f} to {ratio.high:.3f})"
    share = timing.floor_ms and timing.floor_ms / timing.candidate.median
    return (
        shape_text(timing.case.shape),
        timing.case.dtype,
        _milliseconds(timing.candidate),
        timing.baseline_name or "-",
        _milliseconds(timing.baseline) if timing.baseline else "-",
        speedup,
        _word(ratio, noise),
        f"{noise:.1%}" if timing.same else "-",
        f"{share:.0%}" if share else "-",
    )


def _word(ratio: Interval | None, noise: float) -> str:
    if ratio is None:
        return "-"
    if is_faster(ratio, noise):
        return "faster"
    return "slower" if ratio.high < 1 / (1 + noise) else "even"


def _other_times(timing: TimingResult) -> list[tuple[str, ...]]:
    sides = {"candidate": timing.columns, timing.baseline_name: timing.baseline_columns}
    shape = shape_text(timing.case.shape)
    return [(shape, side, *_cells(c)) for side, c in sides.items() if c is not None]


def _cells(columns: Columns) -> tuple[str, str, str]:
    def cell(value: float | None, digits: int) -> str:
        return "-" if value is None else f"{value:.{digits}f}"

    return cell(columns.warm_ms, 4), cell(columns.graph_ms, 4), cell(columns.host_us, 1)


def _conditions(timings: list[TimingResult]) -> str:
    """Clocks over all rows, or why they are not known."""
    seen = [t.clocks for t in timings if t.clocks is not None]
    known = [c for c in seen if c.sm_high]
    if not known:
        return f"clocks not recorded: {seen[0].problem if seen else 'not asked for'}"
    reasons = dict.fromkeys(reason for c in known for reason in c.throttled_by)
    return (
        f"SM {min(c.sm_low for c in known)} to {max(c.sm_high for c in known)} MHz, memory "
        f"{min(c.memory_low for c in known)} to {max(c.memory_high for c in known)} MHz, up to "
        f"{max(c.temperature for c in known)} C, throttled by: {', '.join(reasons) or 'nothing'}"
    )


def _milliseconds(times: Summary) -> str:
    """The median with the quartiles around it."""
    return f"{times.median:.4f} ({times.q1:.4f} to {times.q3:.4f})"
