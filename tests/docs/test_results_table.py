"""The table of measurements in README.md."""

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.results_table import (
    BEGIN,
    END,
    README,
    ResultsError,
    load,
    table,
    with_table,
)

ROW: dict[str, Any] = {
    "name": "assign",
    "shape": {"B": 32, "N": 65536},
    "dtype": "bf16",
    "ours_ms": 0.8512,
    "baseline": "FlashLib",
    "baseline_ms": 1.43,
    "ratio": 1.68,
    "device": "H200",
    "date": "2026-12-01",
    "commit": "abc1234",
    "command": "python -m benchmarks.h200 assign",
}


def test_the_readme_is_in_sync() -> None:
    text = README.read_text(encoding="utf-8")
    assert with_table(text, table(load())) == text, "python benchmarks/results_table.py"


def test_a_row_has_times_and_ratio() -> None:
    made = table([ROW, {**ROW, "name": "update", "date": "2026-11-30", "commit": "old"}])
    line = "| assign | B=32 N=65536 | bf16 | 0.851 ms | FlashLib | 1.430 ms | 1.68 | H200 |"
    assert line in made.splitlines()
    assert "last measured on 2026-12-01 at commit `abc1234`" in made
    widths = {line.count("|") for line in made.splitlines() if line.startswith("|")}
    assert widths == {9}


def test_a_wrong_result_has_no_time() -> None:
    made = table([{**ROW, "correct": False}])
    assert "| wrong result |" in made
    assert "0.851" not in made


def test_without_measurements_there_is_a_sentence(tmp_path: Path) -> None:
    assert load(tmp_path / "results.json") == []
    assert table([]).startswith("Nothing has been measured")


@pytest.mark.parametrize("text", ["{}", "[1]", '{"rows": []}'])
def test_a_file_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "results.json"
    path.write_text(text)
    with pytest.raises(ResultsError, match=r"results\.json is no list of rows"):
        load(path)


def test_a_row_that_lacks_fields_is_named(tmp_path: Path) -> None:
    path = tmp_path / "results.json"
    path.write_text(json.dumps([ROW, {"name": "gemm", "shape": {}}]))
    with pytest.raises(ResultsError, match="row 1 of the results lacks dtype, ours_ms"):
        table(load(path))


def test_a_readme_without_the_markers_is_refused() -> None:
    with pytest.raises(ResultsError, match="lacks the line"):
        with_table("# CAKE\n", "table\n")
    with pytest.raises(ResultsError, match="end of results"):
        with_table(f"# CAKE\n{BEGIN}\n", "table\n")
    assert with_table(f"a\n{BEGIN}\nold\n{END}\nb\n", "new\n") == f"a\n{BEGIN}\n\nnew\n\n{END}\nb\n"
