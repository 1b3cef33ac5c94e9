"""The events that lead to a finding of the phase simulation: a column for each actor, as SVG too.

The data are the facts of a diagnostic as :func:`cake.verify.phase.check` describes them; actors
that do the same share a column.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from cake.report.markup import Child, Markup, tag

Kind = Literal["wait", "signal", "work", "stuck"]

_KINDS: dict[str, Kind] = {
    "wait": "wait",
    "wait for": "wait",
    "pass": "wait",
    "arrive": "signal",
    "arrive when done": "signal",
    "expect bytes": "signal",
}
_PHASES = frozenset({"wait", "pass", "arrive", "arrive when done", "expect bytes", "copy"})
"""Actions whose number is the phase of a barrier."""
STUCK = " for ever"

ROW, LINE_WIDTH, LETTER, TOP = 18, 44, 6.7, 26
"""Pixels of a row, of the column of line numbers, of a letter, and above the first row."""


@dataclass(frozen=True, slots=True)
class Step:
    """One event: in which column, on which line of the schedule, in words."""

    column: int
    line: int
    text: str
    kind: Kind


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    """What the actors do, time downward. ``witness`` says at which sizes."""

    columns: tuple[str, ...]
    steps: tuple[Step, ...]
    witness: str


def timeline(facts: Mapping[str, Any]) -> Timeline | None:
    """The timeline of a diagnostic with these facts; None if it has no trace."""
    trace: Sequence[Sequence[Any]] = facts.get("trace") or ()
    if not trace:
        return None
    histories: dict[str, list[tuple[Any, ...]]] = {}
    for actor, *rest in trace:
        histories.setdefault(actor, []).append(tuple(rest))
    alike: dict[tuple[Any, ...], list[str]] = {}
    for actor, history in histories.items():
        alike.setdefault(tuple(history), []).append(actor)
    column = {actors[0]: i for i, actors in enumerate(alike.values())}
    return Timeline(
        columns=tuple(map(", ".join, alike.values())),
        steps=tuple(_step(column[actor], *rest) for actor, *rest in trace if actor in column),
        witness=_witness(facts),
    )


def _step(column: int, action: str, what: str, phase: int, line: int) -> Step:
    stuck = action.endswith(STUCK)
    plain = action.removesuffix(STUCK)
    kind: Kind = "stuck" if stuck else _KINDS.get(plain, "work")
    when = ""
    if plain in _PHASES:
        when = ", at once" if phase < 0 else f", phase {phase}"
    return Step(column, line, f"{plain} {what}{when}{',' + STUCK if stuck else ''}".strip(), kind)


def _witness(facts: Mapping[str, Any]) -> str:
    tiles = facts.get("tiles", 0)
    return ", ".join(
        [
            *facts.get("sizes", ()),
            *([f"{tiles} tiles of a CTA"] if tiles > 1 else []),
            *facts.get("trips", ()),
        ]
    )


def picture(t: Timeline) -> Markup:
    """The timeline as inline SVG; classes of the style sheet give the colours."""
    texts = [[s.text for s in t.steps if s.column == i] for i in range(len(t.columns))]
    widths = [
        16 + LETTER * max(map(len, (name, *own)))
        for name, own in zip(t.columns, texts, strict=True)
    ]
    left = [LINE_WIDTH + sum(widths[:i]) for i in range(len(widths) + 1)]
    height = TOP + ROW * len(t.steps) + 6
    parts: list[Child] = [tag("title", f"Events that lead to the finding ({t.witness})")]
    for i, name in enumerate(t.columns):
        parts.append(tag("line", x1=left[i], y1=8, x2=left[i], y2=height - 4, class_="axis"))
        parts.append(tag("text", name, x=left[i] + 8, y=TOP - 9, class_="actor"))
    for row, s in enumerate(t.steps):
        y = TOP + ROW * row
        box = {"x": left[s.column] + 2, "y": y, "width": widths[s.column] - 6, "height": ROW - 3}
        parts.append(tag("rect", **box, rx=3, class_=f"event {s.kind}"))
        parts.append(tag("text", s.text, x=left[s.column] + 8, y=y + 11.5, class_="event"))
        parts.append(tag("text", s.line, x=LINE_WIDTH - 10, y=y + 11.5, class_="row"))
    return tag(
        "svg",
        *parts,
        viewBox=f"0 0 {left[-1]:.0f} {height}",
        width=f"{left[-1]:.0f}",
        class_="timeline",
        role="img",
    )
