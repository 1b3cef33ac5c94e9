"""The tables of docs/verifier.md, made from the JSON files of the measurements.

``python -m benchmarks.verifier.page docs/perf/verifier.json docs/verifier.md`` puts those of the
verifier between the markers of the page; ``benchmarks.verifier.device`` writes its own section.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

BEGIN = "<!-- figures: made by benchmarks/verifier/page.py from docs/perf/verifier.json -->"
END = "<!-- end of figures -->"
DEVICE_BEGIN = "<!-- device: made by benchmarks/verifier/device.py -->"
DEVICE_END = "<!-- end of device -->"

LAYERS = (
    *("language", "L0", "L1", "L2", "L4", "simulator"),
    *("equivalent", "survivor", "timeout", "crash"),
)
VERDICTS = ("accepted", "incomplete", "rejected", "refused", "timeout")


def render(figures: Mapping[str, Any]) -> str:
    """All tables of the verifier's figures, as Markdown."""
    plain = {k: v for k, v in figures.items() if not isinstance(v, list | dict)}
    details = figures["details"]
    kinds = {"that make it unsafe": "hazards", "that change values": "values", "all": "all"}
    columns = list(details["all"])
    return "\n\n".join(
        [
            _table(("figure", "value"), ([k, _number(v)] for k, v in plain.items())),
            "Mutants by the kind of their operator:",
            _table(
                ("operators", *columns),
                ([name, *(_number(details[k][c]) for c in columns)] for name, k in kinds.items()),
            ),
            "Mutants per operator that makes a program unsafe, by what became of them:",
            _counts("operator", figures["operators"], LAYERS),
            "The same per schedule:",
            _counts("schedule", figures["schedules"], LAYERS),
            "Mutants per operator that changes values:",
            _counts("operator", details["value_operators"], LAYERS),
            "Verdicts on valid schedules:",
            _counts("family", details["valid"], VERDICTS),
            "Verdicts on unsafe schedules:",
            _counts("family and fault", details["unsafe"], VERDICTS),
            "Survivors that no argument covers:",
            _table(
                ("schedule", "operator", "verdict", "difference"),
                (
                    [s["subject"], s["operator"], s.get("verdict", ""), _code(s["diff"])]
                    for s in details["survivors"]
                ),
            ),
        ]
    )


def render_device(result: Mapping[str, Any]) -> str:
    """The table of what became of mutants on the device."""
    states = sorted({*result["killed_states"], *result["accepted_states"]})
    rows = [
        ["killed", result["killed"], *(result["killed_states"].get(s, 0) for s in states)],
        ["accepted", result["accepted"], *(result["accepted_states"].get(s, 0) for s in states)],
    ]
    made = f"Commit {result['commit'] or 'unknown'}, {result['date']}: `{result['command']}`."
    return "\n\n".join(
        [made, _table(("mutants", "run", *states), ([str(v) for v in row] for row in rows))]
    )


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


def _table(head: tuple[str, ...], rows: Iterable[list[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def write(figures: Mapping[str, Any], page: Path) -> None:
    """Put the tables between the markers of a page. ``ValueError`` if it has none."""
    _put(page, BEGIN, END, render(figures))


def write_device(result: Mapping[str, Any], page: Path) -> None:
    """Put the device's table between its markers. ``ValueError`` if the page has none."""
    _put(page, DEVICE_BEGIN, DEVICE_END, render_device(result))


def _put(page: Path, begin: str, end: str, tables: str) -> None:
    text = page.read_text(encoding="utf-8")
    before, after = text.index(begin) + len(begin), text.index(end)
    page.write_text(f"{text[:before]}\n\n{tables}\n\n{text[after:]}", encoding="utf-8")


if __name__ == "__main__":
    source, target = map(Path, sys.argv[1:])
    write(json.loads(source.read_text(encoding="utf-8")), target)
