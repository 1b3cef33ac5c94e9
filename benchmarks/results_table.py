"""The table of measurements in README.md, made from docs/perf/results.json.

``python benchmarks/results_table.py`` puts it between the markers. Each row of the file is one
measurement: ``name``, ``shape`` (extents by name), ``dtype``, ``ours_ms``, ``baseline``,
``baseline_ms``, ``ratio`` (baseline time by ours, above 1 is faster), ``device``, ``date``,
``commit``, ``command``. ``correct`` is false where the result was wrong: such a time is none.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
README = ROOT / "README.md"
RESULTS = ROOT / "docs" / "perf" / "results.json"

BEGIN = "<!-- results: made by benchmarks/results_table.py from docs/perf/results.json -->"
END = "<!-- end of results -->"

FIELDS = (
    "name",
    "shape",
    "dtype",
    "ours_ms",
    "baseline",
    "baseline_ms",
    "ratio",
    "device",
    "date",
    "commit",
    "command",
)


class ResultsError(ValueError):
    """The results do not have the form that a table can be made of."""


def table(results: Sequence[Mapping[str, Any]]) -> str:
    """The Markdown table; a sentence where nothing has been measured."""
    if not results:
        return "Nothing has been measured for this version yet.\n"
    lines = ["| kernel | shape | dtype | CAKE | baseline | baseline's time | speed-up | device |"]
    lines.append("| --- | --- | --- | ---: | --- | ---: | ---: | --- |")
    for number, row in enumerate(results):
        if missing := [field for field in FIELDS if field not in row]:
            raise ResultsError(f"row {number} of the results lacks {', '.join(missing)}")
        lines.append(_line(row))
    newest = max(results, key=lambda row: str(row["date"]))
    measured = f"Medians; last measured on {newest['date']} at commit `{newest['commit']}`."
    lines += ["", f"{measured} [How, and by which commands](docs/perf/README.md)."]
    return "\n".join(lines) + "\n"


def _line(row: Mapping[str, Any]) -> str:
    right = row.get("correct", True)
    cells = (
        row["name"],
        " ".join(f"{name}={extent}" for name, extent in row["shape"].items()),
        row["dtype"],
        f"{row['ours_ms']:.3f} ms" if right else "wrong result",
        row["baseline"],
        f"{row['baseline_ms']:.3f} ms",
        f"{row['ratio']:.2f}" if right else "-",
        row["device"],
    )
    return f"| {' | '.join(str(cell) for cell in cells)} |"


def load(path: Path = RESULTS) -> list[dict[str, Any]]:
    """The rows of the file; none if there is no file. Raises :class:`ResultsError`."""
    if not path.exists():
        return []
    rows = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise ResultsError(f"{path.name} is no list of rows")
    return rows


def with_table(readme: str, made: str) -> str:
    """``readme`` with ``made`` between the markers. Raises :class:`ResultsError` without them."""
    before, begin, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ResultsError(f"README.md lacks the line {BEGIN if not begin else END}")
    return f"{before}{begin}\n\n{made}\n{end}{after}"


def main() -> None:
    """Write the table into README.md."""
    README.write_text(with_table(README.read_text("utf-8"), table(load())), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except ResultsError as error:
        sys.exit(f"error: {error}")
