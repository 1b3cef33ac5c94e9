"""A search that is killed, interrupted or cut off by a full disk loses and repeats nothing."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from cake.diag import CakeError
from cake.evolve import Budget, Progress, Store, resume, run
from cake.evolve import database as database_module
from cake.evolve.start import new_run
from tests.evolve.samples import config, evaluated, schedule

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def session(tmp_path, cache):
    """A running search, to be stopped after its second evaluation."""
    schedule(tmp_path)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.evolve.session", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "CAKE_CACHE_DIR": str(cache), "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def follow_to(process: subprocess.Popen, line: str) -> None:
    for got in process.stdout:
        if got.strip() == line:
            return
    pytest.fail(f"the session ended without saying {line!r}")


def workers_of(process: subprocess.Popen) -> list[int]:
    """Children of a process that are alive."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text()
    return [int(number) for number in children.split()]


def alive(number: int) -> bool:
    try:
        state = Path(f"/proc/{number}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"


def test_kill_9_loses_and_repeats_no_finished_evaluation(session, tmp_path, finished) -> None:
    follow_to(session, "evaluate 2")
    workers = workers_of(session)
    session.send_signal(signal.SIGKILL)
    session.wait()
    before = evaluated(tmp_path / "run")
    assert len(before) >= 2
    deadline = time.monotonic() + 10
    while any(map(alive, workers)):
        assert time.monotonic() < deadline, "workers outlive a search that was killed"
        time.sleep(0.05)

    result = resume(tmp_path / "run", workers=1)
    assert evaluated(tmp_path / "run")[: len(before)] == before
    assert (result.stopped, result.evaluations) == ("exhausted", 6)
    assert result.best == finished[0].best
    with Store.open(tmp_path / "run", writable=False) as store:
        assert [s["outcome"] for s in store.sessions()] == [None, "exhausted"]
        assert store.interrupted() == ()


def test_ctrl_c_ends_cleanly_and_says_how_to_go_on(session, tmp_path, finished) -> None:
    follow_to(session, "evaluate 2")
    workers = workers_of(session)
    session.send_signal(signal.SIGINT)
    rest = session.stdout.read()
    assert session.wait() == 0
    assert "stopped interrupted" in rest
    assert f"cake evolve --resume {tmp_path / 'run'}" in rest
    assert not any(map(alive, workers))
    assert (tmp_path / "run" / "summary.json").is_file()

    before = evaluated(tmp_path / "run")
    assert resume(tmp_path / "run", workers=1).best == finished[0].best
    assert evaluated(tmp_path / "run")[: len(before)] == before


def test_one_process_at_a_time_works_on_a_run(finished) -> None:
    folder = finished[0].folder
    with Store.open(folder):
        with pytest.raises(CakeError, match="CK822"):
            resume(folder)
        with Store.open(folder, writable=False) as reader:
            assert reader.evaluations()


def test_a_full_disk_is_said_and_costs_nothing_that_was_reported(tmp_path, monkeypatch) -> None:
    opened: list[sqlite3.Connection] = []
    create = database_module.create

    def remembered(*args) -> sqlite3.Connection:
        opened.append(create(*args))
        return opened[0]

    monkeypatch.setattr("cake.evolve.store.create", remembered)
    reported: list[Progress] = []

    def fill_up(step: Progress) -> None:
        reported.append(step)
        if step.phase == "evaluate":
            # SQLite gives the error of a full disk once it may add no more pages.
            pages = opened[0].execute("PRAGMA page_count").fetchone()[0]
            opened[0].execute(f"PRAGMA max_page_count = {pages}")

    with pytest.raises(CakeError) as caught:
        run(config(tmp_path, keep=1.0), progress=fill_up)
    (finding,) = caught.value.diagnostics
    assert finding.code == "CK824"
    assert "full" in finding.message
    assert str(tmp_path / "run") in finding.message
    assert f"cake evolve --resume {tmp_path / 'run'}" in finding.helps[1]
    told = [p for p in reported if p.phase == "evaluate"]
    before = evaluated(tmp_path / "run")
    assert len(before) == len(told) >= 1

    result = resume(tmp_path / "run", workers=1)
    assert result.evaluations == 6
    assert evaluated(tmp_path / "run")[: len(before)] == before


def test_a_folder_that_cannot_be_written_is_said(tmp_path) -> None:
    (tmp_path / "run").write_text("a file where the folder should be")
    with pytest.raises(CakeError, match="CK824"):
        run(config(tmp_path))


def test_outputs_that_cannot_be_written_leave_the_run_whole(tmp_path, monkeypatch) -> None:
    def full(*args) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("cake.evolve.outputs.write_whole", full)
    options = {"budget": Budget(max_evaluations=1)}
    with pytest.raises(CakeError, match="No space left on device"):
        run(config(tmp_path, **options))
    assert len(evaluated(tmp_path / "run")) == 1
    monkeypatch.undo()
    assert resume(tmp_path / "run", workers=1).files


def test_a_run_is_never_overwritten(tmp_path) -> None:
    new_run(config(tmp_path)).close()
    with pytest.raises(CakeError, match="CK821"):
        run(config(tmp_path))


@pytest.mark.parametrize("content", [None, b"", b"no database at all, but long enough" * 40])
def test_what_is_no_run_is_said(tmp_path, content) -> None:
    if content is not None:
        (tmp_path / "run.sqlite").write_bytes(content)
    with pytest.raises(CakeError, match="CK823"):
        resume(tmp_path)


def test_a_run_of_another_version_is_not_touched(tmp_path) -> None:
    new_run(config(tmp_path)).close()
    with sqlite3.connect(tmp_path / "run" / "run.sqlite") as db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(CakeError, match="has version 99; this CAKE reads version 1"):
        resume(tmp_path / "run")


def test_a_run_that_was_killed_while_it_was_made_is_made_anew(tmp_path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "run.sqlite").touch()
    store = new_run(config(tmp_path))
    assert store.setting.workload == "rmsnorm"
    store.close()
