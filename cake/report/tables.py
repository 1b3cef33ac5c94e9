"""Tables, figures and headings: what the sections of the report are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cake.report.markup import Child, Markup, join, tag

LONG_LIST = 12
"""Groups that are shown before the rest is folded away."""


def section(title: str, *children: Child, anchor: str) -> Markup:
    """A part of the page with its heading."""
    return tag("section", tag("h2", title), *children, id=anchor)


def table(heads: Sequence[str], rows: Sequence[Sequence[Child]], **attributes: str) -> Markup:
    """A table; columns that hold numbers alone are aligned to the right."""
    numeric = [bool(rows) and all(_is_number(r[i]) for r in rows) for i in range(len(heads))]

    def cell(name: str, child: Child, i: int, **extra: str) -> Markup:
        return tag(name, child, class_="number" if numeric[i] else None, **extra)

    head = tag("tr", *(cell("th", h, i, scope="col") for i, h in enumerate(heads)))
    body = [tag("tr", *(cell("td", c, i) for i, c in enumerate(r))) for r in rows]
    whole = tag("table", tag("thead", head), tag("tbody", *body), **attributes)
    return tag("div", whole, class_="scroll", tabindex=0, role="region", aria_label="table")


def _is_number(child: Child) -> bool:
    if isinstance(child, int | float) or child is None:
        return True
    return child == "" or child.replace(".", "", 1).replace("e-", "", 1).isdigit()


def ms(seconds: float | None) -> str:
    """Milliseconds with four digits; empty for none."""
    return "" if seconds is None else f"{seconds * 1e3:.4g}"


def folded(heads: Sequence[str], rows: Sequence[Sequence[Child]]) -> Markup:
    """A table whose end is folded away if it is long."""
    if not rows:
        return tag("p", "Nothing.", class_="note")
    first = table(heads, rows[:LONG_LIST])
    rest = rows[LONG_LIST:]
    if not rest:
        return first
    summary = tag("summary", f"{len(rest)} more")
    return join(first, tag("details", summary, table(heads, rest)))


def meta_text(meta: Any) -> str:
    """Meta parameters on one line."""
    return " ".join(f"{name}={value}" for name, value in meta.items())
