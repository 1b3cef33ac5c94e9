"""Classification of what a mutant does on the device, with children that are no GPU programs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.verifier.device import figures, on_device
from benchmarks.verifier.page import DEVICE_BEGIN, DEVICE_END, write_device


def child(tmp_path: Path, *statements: str) -> dict[str, Any]:
    """The fate of a mutant whose child executes statements; ``say`` writes a line."""
    script = tmp_path / "child.py"
    head = [
        "import json, os, sys, time",
        "request = json.loads(sys.stdin.read())",
        "def say(**line): print(json.dumps(line), flush=True)",
    ]
    script.write_text("\n".join([*head, *statements]))
    command = (sys.executable, str(script))
    return on_device({"text": "x"}, command=command, other_seconds=5.0, run_seconds=0.4)


@pytest.mark.parametrize("state", ["right", "wrong", "error", "no build"])
def test_the_child_says_what_it_saw(tmp_path: Path, state: str) -> None:
    assert child(tmp_path, "say(state='built')", f"say(state='{state}', detail='d')") == {
        "state": state,
        "detail": "d",
    }


def test_a_launch_without_an_answer_is_a_hang(tmp_path: Path) -> None:
    fate = child(tmp_path, "say(state='built')", "say(state='launched', round=0)", "time.sleep(60)")
    assert fate["state"] == "hang"
    assert json.loads(fate["detail"]) == {"state": "launched", "round": 0}


def test_launches_that_answer_in_turn_are_no_hang(tmp_path: Path) -> None:
    lines = ["for i in range(3):", "    say(state='launched', round=i)", "    time.sleep(0.1)"]
    # The comparison with the reference takes longer than a launch may.
    lines += ["    say(state='answered')", "    time.sleep(0.5)"]
    assert child(tmp_path, *lines, "say(state='right')")["state"] == "right"


def test_a_child_that_dies_is_an_error(tmp_path: Path) -> None:
    fate = child(tmp_path, "say(state='launched')", "os._exit(9)")
    assert fate == {"state": "error", "detail": "exit status 9"}


def test_the_request_reaches_the_child(tmp_path: Path) -> None:
    assert child(tmp_path, "say(state='right', detail=request['text'])")["detail"] == "x"


def test_figures_leave_out_what_does_not_build(tmp_path: Path) -> None:
    killed = [{"state": s} for s in ("hang", "wrong", "right", "no build")]
    accepted = [{"state": "right"}, {"state": "wrong"}]
    result = figures(killed, accepted)
    assert (result["killed"], result["accepted"], result["no_build"]) == (3, 2, 1)
    assert result["refuted"] == [{"state": "wrong"}]
    page = tmp_path / "page.md"
    page.write_text(f"{DEVICE_BEGIN}\n{DEVICE_END}\n")
    write_device({**result, "commit": "abc", "date": "today", "command": "c"}, page)
    assert "| killed | 3 | 1 | 1 | 1 |" in page.read_text()
