"""The store: what was reported survives, whatever happens; verdicts come out again."""

import os
import random
import select
import signal
import sqlite3
import time
from dataclasses import replace
from pathlib import Path

import pytest

from cake.judge import Candidate, Evaluation, TimingPlan, judge
from cake.judge.database import (
    FormatError,
    Schema,
    create,
    open_to_read,
    open_to_write,
    transaction,
)
from cake.judge.replay import replay
from cake.judge.store import DATABASE, OBJECTS, Store, StoreError, default_folder
from cake.workloads import Case

KILLS = 100
CASES = (Case(shape={"M": 4, "N": 64}, dtype="f32"), Case(shape={"M": 3, "N": 8}, dtype="bf16"))


def request(runner="compute", **changes) -> Evaluation:
    settings = {
        "workload": "softmax",
        "candidate": Candidate(runner=runner, entry="mine", meta={"W": 2}, text=""),
        "cases": CASES,
        "families": ("normal", "nan"),
        "plugins": ("tests.judge.fakes",),
        **changes,
    }
    return Evaluation(**settings)


@pytest.fixture(scope="module")
def judged():
    """A request with times, and its verdict."""
    asked = request(timing=TimingPlan(warmup=1, samples=3))
    return asked, judge(asked)


def test_a_verdict_comes_back_as_it_was(tmp_path, judged):
    asked, verdict = judged
    with Store(tmp_path / "store") as store:
        first, second = (store.add(asked, verdict) for _ in range(2))
    with Store(tmp_path / "store") as store:
        back, again = store.get(first)
        assert replace(back, cases=asked.cases) == asked
        assert again.to_json() == verdict.to_json()
        assert [(r.id, r.workload, r.status) for r in store.rows()] == [
            (first, "softmax", "passed"),
            (second, "softmax", "passed"),
        ]
    # Equal content is kept once.
    assert len([p for p in (tmp_path / "store" / OBJECTS).rglob("*") if p.is_file()]) == 2


def _write_for_ever(folder: Path, judged, report: int) -> None:
    """The process that is killed: keeps verdicts, and reports each once it is kept."""
    asked, verdict = judged
    with Store(folder) as store:
        for turn in range(10**9):
            number = store.add(replace(asked, seed=turn), replace(verdict, seconds=float(turn)))
            os.write(report, f"{number} {turn} {os.getpid()}\n".encode())


def test_a_hundred_kills_lose_nothing_that_was_reported(tmp_path, judged):
    folder, rng = tmp_path / "store", random.Random(5)
    reported: dict[int, int] = {}
    for turn in range(KILLS):
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            _write_for_ever(folder, judged, write)
        os.close(write)
        # Every other one has kept something; the others may not have come to open the store.
        if turn % 2:
            assert select.select([read], [], [], 60)[0]
        time.sleep(rng.uniform(0.0, 0.02))
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        with os.fdopen(read) as lines:
            for line in lines:
                number, made, writer = map(int, line.split())
                assert writer == pid
                assert number not in reported
                reported[number] = made
    assert len(reported) >= KILLS // 2
    with Store(folder) as store:
        kept = {row.id for row in store.rows()}
        assert reported.keys() <= kept
        for number in kept:
            asked, verdict = store.get(number)
            assert asked.seed == verdict.seconds == reported.get(number, asked.seed)
    db = sqlite3.connect(folder / DATABASE)
    assert db.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    db.close()


class TestDamage:
    def test_a_number_that_is_not_there(self, tmp_path):
        with Store(tmp_path) as store, pytest.raises(StoreError, match="no verdict 7; it is empty"):
            store.get(7)

    def test_an_object_with_another_content(self, tmp_path, judged):
        with Store(tmp_path) as store:
            number = store.add(*judged)
            for path in (tmp_path / OBJECTS).rglob("*"):
                if path.is_file():
                    path.write_text("{}")
            with pytest.raises(StoreError, match="does not have the content of its name"):
                store.get(number)

    def test_a_file_of_another_kind(self, tmp_path):
        (tmp_path / DATABASE).write_text("notes" * 400)
        with pytest.raises(StoreError, match="cannot be opened"):
            Store(tmp_path)

    def test_a_folder_that_cannot_be_made(self, tmp_path):
        (tmp_path / "file").touch()
        with pytest.raises(StoreError, match="cannot be opened"):
            Store(tmp_path / "file" / "store")

    def test_the_folder_of_the_user_can_be_chosen(self, monkeypatch, tmp_path):
        monkeypatch.setenv("CAKE_STORE_DIR", str(tmp_path))
        assert default_folder() == tmp_path
        monkeypatch.delenv("CAKE_STORE_DIR")
        monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
        assert default_folder() == tmp_path / "cake" / "judge"


class TestMigration:
    OLD = Schema(migrations=("CREATE TABLE words (word TEXT) STRICT",))
    NEW = Schema(
        migrations=(
            *OLD.migrations,
            "ALTER TABLE words ADD COLUMN size INTEGER;\nUPDATE words SET size = length(word)",
        )
    )

    def made(self, path, schema):
        def add(db):
            db.execute("INSERT INTO words (word) VALUES ('abc')")

        create(path, schema, add).close()

    def test_an_old_file_is_brought_up_to_date_by_a_writer(self, tmp_path):
        path = tmp_path / "db"
        self.made(path, self.OLD)
        with pytest.raises(FormatError, match="has version 1, not 2"):
            open_to_read(path, self.NEW)
        for _ in range(2):
            db = open_to_write(path, self.NEW)
            assert tuple(db.execute("SELECT * FROM words").fetchone()) == ("abc", 3)
            db.close()
        open_to_read(path, self.NEW).close()

    def test_a_newer_file_is_not_touched(self, tmp_path):
        path = tmp_path / "db"
        self.made(path, self.NEW)
        with pytest.raises(FormatError, match="has version 2; this CAKE reads version 1"):
            open_to_write(path, self.OLD)

    def test_a_migration_that_fails_leaves_the_old_version(self, tmp_path):
        path = tmp_path / "db"
        self.made(path, self.OLD)
        broken = Schema(migrations=(*self.OLD.migrations, "CREATE TABLE more (x);\nNONSENSE"))
        with pytest.raises(sqlite3.OperationalError):
            open_to_write(path, broken)
        db = open_to_write(path, self.OLD)
        assert [r[0] for r in db.execute("SELECT name FROM sqlite_master")] == ["words"]
        db.close()

    def test_an_existing_database_is_not_made_anew(self, tmp_path):
        path = tmp_path / "db"
        self.made(path, self.OLD)
        assert create(path, self.OLD, lambda db: None) is None

    def test_a_transaction_is_all_or_nothing(self, tmp_path):
        path = tmp_path / "db"
        self.made(path, self.OLD)
        db = open_to_write(path, self.OLD)

        def half():
            with transaction(db):
                db.execute("DELETE FROM words")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            half()
        assert db.execute("SELECT count(*) FROM words").fetchone()[0] == 1
        db.close()


class TestReplay:
    @pytest.mark.parametrize("runner", ["compute", "wrong"])
    def test_a_verdict_comes_out_again_with_its_seeds(self, tmp_path, runner):
        asked = request(runner)
        with Store(tmp_path) as store:
            number = store.add(asked, judge(asked))
            again = replay(*store.get(number))
        assert again.same, again.differences
        assert [v.workload for v in again.verdicts] == ["softmax", "softmax"]

    def test_a_difference_is_named(self, judged):
        asked, verdict = judged
        changed = replace(asked, candidate=replace(asked.candidate, runner="wrong"))
        again = replay(changed, verdict)
        assert len(again.differences) == 4
        assert again.differences[0].startswith("M4 N64 f32, normal: passed; now incorrect: y: 1 of")

    def test_a_case_that_a_crash_had_kept_from_being_reached_is_not_missed(self):
        asked = request("leaves", families=("normal",))
        again = replay(asked, judge(asked))
        assert again.same
        assert len(again.verdicts) == 1
