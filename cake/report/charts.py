"""Charts as inline SVG: axes, the best-so-far curve, estimates against measurements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cake.report.markup import Markup, join, tag

WIDTH, HEIGHT = 720, 300
LEFT, RIGHT, TOP, BOTTOM = 84, 20, 16, 48
TICKS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Dot:
    """A point of a chart; ``kind`` is a class of the style sheet, ``title`` its tooltip."""

    x: float
    y: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """A linear axis from ``low`` to ``high`` over pixels ``start`` to ``end``."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        """The pixel of a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(self.start + share * (self.end - self.start), 1)

    def ticks(self) -> list[float]:
        """Round values within the axis."""
        rough = (self.high - self.low) / TICKS
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(s * power for s in (1, 2, 5, 10) if s * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        last = math.floor(self.high / step + 1e-9)
        return [i * step for i in range(first, last + 1)]


def scale(values: Sequence[float], start: float, end: float, *, from_zero: bool = False) -> Scale:
    """An axis that holds ``values`` with a margin."""
    low, high = min(values), max(values)
    if from_zero:
        low = 0.0
    margin = (high - low) * 0.06 or abs(high) * 0.1 or 1.0
    return Scale(low=low if from_zero else low - margin, high=high + margin, start=start, end=end)


def best_so_far(dots: Sequence[Dot], best: Sequence[tuple[float, float]], unit: str) -> Markup:
    """Every evaluation as a dot, and the best until then as a line."""
    across = scale([d.x for d in dots], LEFT, WIDTH - RIGHT, from_zero=True)
    up = scale([d.y for d in dots], HEIGHT - BOTTOM, TOP)
    line = None
    if best:
        x, y = best[0]
        path = f"M{across.at(x)} {up.at(y)}"
        for x, y in best[1:]:
            path += f"H{across.at(x)}V{up.at(y)}"
        path += f"H{across.at(dots[-1].x)}"
        line = tag("path", d=path, class_="best-line")
    return _chart(
        "Best time so far by evaluation",
        _axes(across, up, "evaluation", unit),
        _dots(dots, across, up),
        line,
    )


def scatter(dots: Sequence[Dot]) -> Markup:
    """Estimate against measurement in ms; on the diagonal they agree."""
    values = [v for d in dots for v in (d.x, d.y)]
    across = scale(values, LEFT, WIDTH - RIGHT, from_zero=True)
    up = Scale(low=across.low, high=across.high, start=HEIGHT - BOTTOM, end=TOP)
    diagonal = tag(
        "line",
        x1=across.at(across.low),
        y1=up.at(up.low),
        x2=across.at(across.high),
        y2=up.at(up.high),
        class_="diagonal",
    )
    return _chart(
        "Estimated time against measured time",
        _axes(across, up, "measured, ms", "estimated, ms"),
        diagonal,
        _dots(dots, across, up),
    )


def _chart(label: str, *parts: Markup | None) -> Markup:
    return tag(
        "svg",
        tag("title", label),
        *parts,
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_label=label,
        class_="chart",
    )


def _dots(dots: Sequence[Dot], across: Scale, up: Scale) -> Markup:
    return join(
        *(
            tag(
                "circle",
                tag("title", d.title),
                cx=across.at(d.x),
                cy=up.at(d.y),
                r=4,
                class_=f"dot {d.kind}",
            )
            for d in dots
        )
    )


def _axes(across: Scale, up: Scale, below: str, beside: str) -> Markup:
    parts = []
    for value in up.ticks():
        y = up.at(value)
        parts.append(tag("line", x1=LEFT, y1=y, x2=WIDTH - RIGHT, y2=y, class_="grid"))
        parts.append(tag("text", f"{value:.4g}", x=LEFT - 8, y=y + 4, class_="tick end"))
    for value in across.ticks():
        x = across.at(value)
        parts.append(tag("text", f"{value:.4g}", x=x, y=HEIGHT - BOTTOM + 18, class_="tick middle"))
    middle = (LEFT + WIDTH - RIGHT) / 2
    parts.append(tag("text", below, x=middle, y=HEIGHT - 8, class_="axis middle"))
    turned = f"rotate(-90 16 {(TOP + HEIGHT - BOTTOM) / 2})"
    parts.append(
        tag(
            "text",
            beside,
            x=16,
            y=(TOP + HEIGHT - BOTTOM) / 2,
            transform=turned,
            class_="axis middle",
        )
    )
    base = HEIGHT - BOTTOM
    parts.append(tag("line", x1=LEFT, y1=base, x2=WIDTH - RIGHT, y2=base, class_="base"))
    return join(*parts)
