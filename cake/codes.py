"""The codes of all stages together: for `cake explain`, and as docs/codes.md.

A code is defined beside the check that reports it, so it is known once that module is imported.
``python -m cake.codes > docs/codes.md`` writes the page anew.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from itertools import groupby

import cake.diag
from cake.diag import Code, all_codes

DEFINING = (
    "cake.lang.codes",
    "cake.ops",
    "cake.verify",
    "cake.verify.phase",
    "cake.simulate.codes",
    "cake.codegen.build_findings",
    "cake.codegen.emit_findings",
    "cake.codegen.cache",
    "cake.runtime.findings",
    "cake.evolve.findings",
    "cake.cli.findings",
)
"""Modules and packages whose import defines every code there is."""

_AREAS = {
    "0": "Language and parsing",
    "1": "Types and names",
    "2": "Primitives and targets",
    "3": "Verifier: structure",
    "4": "Verifier: rings",
    "5": "Simulation",
    "6": "Build",
    "7": "Run time and launch",
    "8": "Judge and evolution",
    "9": "Environment",
}
"""The hundreds, as in :mod:`cake.diag.catalogue`."""

_INTRO = """\
# Codes

Made by `python -m cake.codes > docs/codes.md` from the catalogue; do not edit. Every finding of
every stage has a code and a name that stay what they are. `cake explain CODE` prints the page.
"""


@cache
def load_all() -> tuple[Code, ...]:
    """Every code of every stage, in order."""
    for module in DEFINING:
        import_module(module)
    return all_codes()


def explain(code_or_name: str) -> str:
    """The Markdown page of a code, given by code or name in any case.

    Raises :class:`cake.diag.UnknownCodeError` with the nearest entries.
    """
    load_all()
    return cake.diag.explain(code_or_name)


def render() -> str:
    """docs/codes.md: a table of all codes, then a section for each."""
    entries = load_all()
    lines = [_INTRO]
    for area, group in groupby(entries, key=lambda entry: entry.code[2]):
        lines += [f"## {_AREAS[area]}", "", "| code | name | severity | summary |"]
        lines.append("| --- | --- | --- | --- |")
        lines += [_row(entry) for entry in group]
        lines.append("")
    lines += [line for entry in entries for line in _section(entry)]
    return "\n".join(lines).rstrip("\n") + "\n"


def _row(entry: Code) -> str:
    summary = entry.summary.replace("|", "\\|")
    return (
        f"| [{entry.code}](#{entry.code.lower()}) | `{entry.name}` | {entry.severity} | {summary} |"
    )


def _section(entry: Code) -> Iterator[str]:
    """The explain page, one level deeper, with an anchor that does not depend on its name."""
    page = re.sub(r"^# ", "## ", explain(entry.code), flags=re.MULTILINE)
    yield f'<a id="{entry.code.lower()}"></a>'
    yield ""
    yield page


if __name__ == "__main__":
    print(render(), end="")
