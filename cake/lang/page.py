"""The primitives for people: docs/primitives.md, and the page of one primitive.

``python -m cake.lang.page > docs/primitives.md`` writes the page anew.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator, Sequence

import cake.ops  # noqa: F401  (registers the primitives)
from cake.lang.calls import signature
from cake.ops.base import REQUIRED, Param, Primitive, all_primitives
from cake.targets import get, names

_KINDS = {
    "value": "run-time value",
    "place": "shared-memory view or place in a tensor",
    "static": "compile-time value",
    "resource": "declared resource",
}

_INTRO = """\
# Primitives

Made by `python -m cake.lang.page > docs/primitives.md` from the primitives in `cake/ops/`; do not
edit. A primitive is called by its name in the body of a role; some also stand at kernel level.
Operators are primitives too: `a + b` is `add(a, b)`, `a < b` is `lt(a, b)`, `a if c else b` is
`select(c, a, b)`. `cake primitives NAME` prints one entry.
"""


def documentation(p: Primitive) -> str:
    """The documentation as Markdown, where one backtick marks code as well as two."""
    return inspect.cleandoc(p.doc).replace("``", "`")


def summary(p: Primitive) -> str:
    """The first sentence of a primitive's documentation."""
    text = " ".join(documentation(p).split())
    first = re.split(r"(?<=[.:;])\s", text, maxsplit=1)[0]
    return first.rstrip(".:;")


def admitted(p: Primitive) -> tuple[str, ...]:
    """The targets that have the instruction and for which it can be emitted."""
    return tuple(
        name
        for name in names()
        if (p.requires is None or getattr(get(name), p.requires)) and p.emission(name) is not None
    )


def facets(p: Primitive) -> dict[str, str]:
    """What is there of a primitive, facet by facet; a hole says why it is one."""
    emission = ", ".join(
        f"{prefix}*" if prefix else "every target that has it" for prefix in sorted(p.emit)
    )
    present = {
        "typing": "checked when the schedule is read",
        "effects": "declared for the verifier",
        "meaning": "simulated" if p.meaning else "",
        "cost": "estimated" if p.cost else "",
        "emission": emission,
    }
    return {name: text or f"none: {p.holes.get(name, '?')}" for name, text in present.items()}


def entry(p: Primitive) -> str:
    """The Markdown of one primitive, below a heading of level 2."""
    lines = [f"## {p.name}", "", f"`{signature(p)}`", "", documentation(p), ""]
    if p.params:
        lines += ["| parameter | takes | default |", "| --- | --- | --- |"]
        lines += [_parameter(q) for q in p.params]
        lines.append("")
    lines += [f"* {line}" for line in _facts(p)]
    return "\n".join(lines) + "\n"


def _parameter(q: Param) -> str:
    default = "" if q.default is REQUIRED else f"`{q.default!r}`"
    return f"| `{q.name}` | {_KINDS[q.kind]} | {default} |"


def _facts(p: Primitive) -> Iterator[str]:
    targets = admitted(p)
    yield "Targets: " + ("all" if targets == names() else ", ".join(targets) or "none")
    units = " or ".join(sorted(p.units))
    yield f"Executed by: {units}" + (", all threads together" if p.convergent else "")
    if p.outside_roles:
        yield "May stand at kernel level"
    holes = [f"{name} ({reason})" for name, reason in p.holes.items()]
    if holes:
        yield f"Missing: {'; '.join(holes)}"
    yield f"Source: {p.source}"


def render(primitives: Sequence[Primitive]) -> str:
    """docs/primitives.md: a table of all, then an entry for each."""
    lines = [_INTRO, "| primitive | what it does |", "| --- | --- |"]
    lines += [f"| [{p.name}](#{p.name}) | {_cell(summary(p))} |" for p in primitives]
    lines.append("")
    lines += [entry(p) for p in primitives]
    return "\n".join(lines).rstrip("\n") + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


if __name__ == "__main__":
    print(render(all_primitives()), end="")
