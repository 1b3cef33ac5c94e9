"""Targets for people: rows of figures with their sources, and docs/targets.md.

``python -m cake.targets.page > docs/targets.md`` writes the page anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TypeVar

from cake.targets import get, names
from cake.targets.cited import Cited, Source
from cake.targets.forms import BlockScaledForm, MmaForm, WgmmaForm
from cake.targets.limits import KIB, MIB
from cake.targets.model import Capabilities, Target

Value = bool | int | float | str | None
PairForm = TypeVar("PairForm", MmaForm, BlockScaledForm, WgmmaForm)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One figure of a target.

    ``name`` is dotted as ``Target.source`` takes it; figures of a device are prefixed with the
    device's name and a colon. A figure of several parts (forms, tensor rates) gives one row each.
    """

    name: str
    value: Value
    unit: str
    source: Source

    @property
    def text(self) -> str:
        """The value with its unit, for people."""
        value = self.value
        if value is None:
            return "unknown"
        if isinstance(value, bool):
            return "yes" if value else "no"
        if isinstance(value, float):
            return (
                f"{value / 1e12:.4g} T{self.unit}"
                if value >= 1e12
                else f"{value / 1e9:.4g} G{self.unit}"
            )
        if isinstance(value, int) and self.unit == "bytes" and value % KIB == 0:
            return f"{value // MIB} MiB" if value % MIB == 0 else f"{value // KIB} KiB"
        return f"{value} {self.unit}".rstrip()


def describe(target: Target) -> list[Row]:
    """Every figure of a target: capabilities, limits, forms, sections, rates, devices."""
    rows = list(_rows(target, ""))
    for name in ("mbarrier", "tma", "setmaxnreg", "tmem", "rates"):
        section = getattr(target, name)
        if section is not None:
            rows += _rows(section, f"{name}.")
    for part in target.parts:
        rows += _rows(part, f"{part.name}: ")
        if part.measured is not None:
            rows += _rows(part.measured, f"{part.name}: measured.")
    return rows


def _rows(section: Cited, prefix: str) -> Iterator[Row]:
    for name, figure in section.figures().items():
        for value in _values(getattr(section, name)):
            yield Row(
                name=prefix + name, value=value, unit=figure.unit, source=section.source(name)
            )


def _values(value: object) -> Iterable[Value]:
    if isinstance(value, tuple):
        first = value[0] if value else None
        if isinstance(first, MmaForm | BlockScaledForm | WgmmaForm):
            return condense(value)
        if isinstance(first, int | str):
            return [", ".join(str(item) for item in value)]
        return [str(item) for item in value]
    return [value] if value is None or isinstance(value, bool | int | float | str) else [str(value)]


def condense(forms: Sequence[PairForm]) -> list[str]:
    """Forms as text, those that differ only in operand types joined: ``e4m3/e5m2 x e4m3/e5m2``."""
    partners: dict[PairForm, dict[str, list[str]]] = {}
    for form in forms:
        partners.setdefault(replace(form, a="", b=""), {}).setdefault(form.a, []).append(form.b)
    lines = []
    for form, by_a in partners.items():
        joined: dict[str, list[str]] = {}
        for a, b in by_a.items():
            joined.setdefault("/".join(b), []).append(a)
        lines += [str(replace(form, a="/".join(a), b=b)) for b, a in joined.items()]
    return lines


_INTRO = """\
# Targets

Made by `python -m cake.targets.page > docs/targets.md` from the data files in `cake/targets/`; do
not edit. Every figure has a source, listed at the end with its kind: a *manual*, a vendor's
*datasheet*, something *measured*, a *probe* of what ptxas accepts, or *derived* from such.
Whatever ptxas can confirm, `tests/targets` asks it.

`cake.targets.get(name)` gives the figures by these names, `.source(figure)` the citation.

## Capabilities
"""


def render(targets: Sequence[Target]) -> str:
    """The page in Markdown: capabilities side by side, the figures of each target, the sources."""
    sources: dict[Source, int] = {}
    lines = [_INTRO, *_table(["", *(t.name for t in targets)], _capabilities(targets))]
    for target in targets:
        lines += ["", f"## {target.name}", ""]
        lines += _table(["figure", "value", "source"], _figures(target, sources))
    lines += ["", "## Sources", ""]
    lines += [f"{number}. {source}" for source, number in sources.items()]
    return "\n".join(lines) + "\n"


def _capabilities(targets: Sequence[Target]) -> Iterator[list[str]]:
    sections = ("tma", "setmaxnreg", "tmem", "block_scaled_mma", "wgmma", "tcgen05")
    for name in (*Capabilities.__annotations__, *sections):
        yield [f"`{name}`", *("yes" if getattr(t, name) else "" for t in targets)]


def _figures(target: Target, sources: dict[Source, int]) -> Iterator[list[str]]:
    """Table rows, one per figure; ``sources`` collects the sources and numbers them."""
    rows = [row for row in describe(target) if not isinstance(row.value, bool)]
    for name, group in groupby(rows, key=lambda row: row.name):
        same = list(group)
        number = sources.setdefault(same[0].source, len(sources) + 1)
        yield [f"`{name}`", "<br>".join(row.text for row in same), str(number)]


def _table(head: list[str], body: Iterable[list[str]]) -> Iterator[str]:
    for cells in (head, ["---"] * len(head), *body):
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print(render([get(name) for name in names()]), end="")
