"""The tables of docs/verifier.md, made from docs/perf/verifier.json.

``python -m benchmarks.verifier.page docs/perf/verifier.json docs/verifier.md`` puts them between
the markers of the page.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures: made by benchmarks/verifier/page.py from docs/perf/verifier.json -->"
END = "<!-- end of figures -->"

LAYERS = ("language", "L0", "L1", "L2", "simulator", "equivalent", "survivor", "timeout", "crash")
VERDICTS = ("accepted", "incomplete", "rejected", "refused", "timeout")


def render(figures: Mapping[str, Any]) -> str:
    """All tables, as Markdown."""
    plain = {k: v for k, v in figures.items() if not isinstance(v, list | dict)}
    parts = [
        _table(("figure", "value"), ([k, _number(v)] for k, v in plain.items())),
        "Mutants per operator, by what became of them:",
        _counts("operator", figures["operators"], LAYERS),
        "Mutants per schedule:",
        _counts("schedule", figures["schedules"], LAYERS),
        "Verdicts on valid schedules:",
        _counts("family", figures["valid"], VERDICTS),
        "Verdicts on unsafe schedules:",
        _counts("family and fault", figures["unsafe"], VERDICTS),
        "Survivors that no argument covers:",
        _table(
            ("schedule", "operator", "verdict", "difference"),
            (
                [s["subject"], s["operator"], s.get("verdict", ""), _code(s["diff"])]
                for s in figures["survivors"]
            ),
        ),
    ]
    return "\n\n".join(parts)


def _number(value: object) -> str:
    return f"{value:.1%}" if isinstance(value, float) else str(value)


def _code(diff: str) -> str:
    lines = [line for line in diff.splitlines() if not line.startswith("@@")]
    text = " ".join(" ".join(line.split()) for line in lines)
    return "`" + text.replace("|", "\\|") + "`"


def _counts(title: str, table: Mapping[str, Mapping[str, int]], columns: tuple[str, ...]) -> str:
    used = [c for c in columns if any(c in row for row in table.values())]
    rows = ([name, *(str(row.get(c, "")) for c in used)] for name, row in table.items())
    return _table((title, *used), rows)


def _table(head: tuple[str, ...], rows: Iterator[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(figures: Mapping[str, Any], page: Path) -> None:
    """Put the tables between the markers of a page. ``ValueError`` if it has none."""
    text = page.read_text(encoding="utf-8")
    before, after = text.index(BEGIN) + len(BEGIN), text.index(END)
    page.write_text(f"{text[:before]}\n\n{render(figures)}\n\n{text[after:]}", encoding="utf-8")


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    write(json.loads(source.read_text(encoding="utf-8")), target)
