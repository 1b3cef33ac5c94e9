"""An estimate as text for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from cake.cost.result import Estimate, ScheduleEstimate, Usage
from cake.cost.walk import Site

TOP_LINES = 5
"""Lines of the schedule that are listed, by their issue slots and pipe work."""


def estimate_page(found: ScheduleEstimate) -> str:
    """Every kernel of a schedule with its resources, the longest first in each table.

    Lines are at most 100 columns; no line break at the end.
    """
    parts = ["\n".join(_kernel(k)) for k in found.kernels]
    if len(found.kernels) > 1:
        parts.append(f"all {len(found.kernels)} kernels: {milliseconds(found.seconds)}")
    return "\n\n".join(parts)


def milliseconds(seconds: float) -> str:
    """A time in ms with four significant digits."""
    return f"{seconds * 1e3:.4g} ms"


def quantity(value: float, unit: str) -> str:
    """A count with a decimal prefix: ``5.5 TFMA``, ``12 GB``, ``3.1 M waits``."""
    joint = "" if unit.isupper() else " "
    for prefix, scale in (("T", 1e12), ("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if value >= scale:
            return f"{value / scale:.3g} {prefix}{joint}{unit}"
    return f"{value:.3g} {unit}"


def _kernel(k: Estimate) -> Iterator[str]:
    kind = "at least" if k.is_bound else "about"
    yield f"{k.kernel}: {kind} {milliseconds(k.seconds)} on {k.part}, bound by {k.bound}"
    if k.is_bound:
        yield "  (a bound, not a prediction: nothing was calibrated on this part)"
    held = k.occupancy
    guess = ", guessed" if held.guessed else ""
    yield (
        f"  {k.ctas} CTAs of {held.threads} threads, {held.ctas} on an SM (limit: {held.limiter}), "
        f"{held.smem_bytes} bytes smem, {held.registers} registers{guess}"
    )
    yield f"  {k.waves:.2f} waves, balance {k.balance:.0%}"
    yield f"  {'resource':<10}{'time alone':>12}{'of longest':>12}  work"
    longest = max((r.exposed for r in k.resources), default=0.0)
    for r in sorted(k.resources, key=lambda r: r.exposed, reverse=True):
        yield _row(r, longest)
    yield from _lines(k.sites)
    yield from (f"  assumed: {text}" for text in k.assumptions)


def _row(r: Usage, longest: float) -> str:
    share = r.exposed / longest if longest else 0.0
    extra = r.exposed - r.seconds
    note = f" (+ {milliseconds(extra)} of other pipes)" if extra > 0.01 * r.seconds else ""
    time = milliseconds(r.seconds)
    return f"  {r.name:<10}{time:>12}{share:>12.0%}  {quantity(r.work, r.unit)}{note}"


def _lines(sites: tuple[Site, ...]) -> Iterator[str]:
    """The lines with most warp instructions."""
    issued: dict[tuple[str, int], float] = {}
    for s in sites:
        key = (s.loc.file, s.loc.line)
        issued[key] = issued.get(key, 0.0) + s.cost.issue * s.times
    total = sum(issued.values())
    if not total:
        return
    yield "  most warp instructions:"
    for (file, line), n in sorted(issued.items(), key=lambda item: -item[1])[:TOP_LINES]:
        yield f"    {n / total:>4.0%}  {file}:{line}"
