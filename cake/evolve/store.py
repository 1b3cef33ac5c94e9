"""The run's database: every candidate, finding, evaluation and time, in SQLite.

One process writes; the lock on ``run.lock`` ends with it. The database is in write-ahead mode and
every evaluation is one transaction, so a process that is killed at any point leaves a run that goes
on where it stopped. Readers (the report) need no lock.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TextIO

from cake.evolve.config import Budget
from cake.evolve.database import DATABASE, connect, connect_to_read, create, locked, writing
from cake.evolve.findings import NOT_A_RUN, error
from cake.evolve.schema import CandidateRow, EvaluationRow
from cake.evolve.setting import Setting
from cake.judge.database import transaction


def now() -> str:
    """The time as ISO 8601 text in UTC."""
    return datetime.now(UTC).isoformat(timespec="seconds")


class Store:
    """An open run. A context manager: closes the database and frees the lock."""

    def __init__(self, folder: Path, connection: sqlite3.Connection, lock: TextIO | None) -> None:
        self.folder = folder
        self._db = connection
        self._lock = lock

    @classmethod
    def create(cls, folder: Path, setting: Setting, budget: Budget) -> Self:
        """A new run in ``folder``, which is made. Raises :class:`CakeError`."""
        facts = {"setting": setting.to_json(), "budget": json.dumps(asdict(budget))}
        with writing(folder), ExitStack() as held:
            folder.mkdir(parents=True, exist_ok=True)
            lock = held.enter_context(locked(folder))
            db = create(folder, facts)
            held.pop_all()
        return cls(folder, db, lock)

    @classmethod
    def open(cls, folder: Path, *, writable: bool = True) -> Self:
        """The run in ``folder``. Raises :class:`CakeError` if there is none, it has another
        version, or another process writes it."""
        if not (folder / DATABASE).is_file():
            raise error(
                NOT_A_RUN,
                f"{folder} holds no run: there is no {DATABASE}",
                helps=("name the folder that `cake evolve` printed",),
            )
        if not writable:
            return cls(folder, connect_to_read(folder), None)
        with writing(folder), ExitStack() as held:
            lock = held.enter_context(locked(folder))
            db = connect(folder)
            held.pop_all()
        return cls(folder, db, lock)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        failure: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the database and free the lock."""
        self._db.close()
        if self._lock is not None:
            self._lock.close()

    # -- facts and sessions ----------------------------------------------------------------------

    @property
    def setting(self) -> Setting:
        return Setting.from_json(self._get("setting"))

    @property
    def budget(self) -> Budget:
        return Budget(**json.loads(self._get("budget")))

    def set_budget(self, budget: Budget) -> None:
        """Replace the budget of the run."""
        with self._transaction():
            self._set("budget", json.dumps(asdict(budget)))

    def fact(self, name: str) -> str | None:
        """A named text of the run, None if it was not set."""
        row = self._db.execute("SELECT value FROM facts WHERE name = ?", (name,)).fetchone()
        return None if row is None else str(row[0])

    def _get(self, name: str) -> str:
        value = self.fact(name)
        assert value is not None
        return value

    def _set(self, name: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO facts VALUES (?, ?)", (name, value))

    def begin_session(self, environment: Mapping[str, str]) -> int:
        """A new session; claims of earlier ones are given up."""
        with self._transaction():
            self._db.execute("DELETE FROM claims")
            row = self._db.execute(
                "INSERT INTO sessions (started, environment) VALUES (?, ?)",
                (now(), json.dumps(environment)),
            )
        assert row.lastrowid is not None
        return row.lastrowid

    def interrupted(self) -> tuple[int, ...]:
        """Candidates whose evaluation a session did not finish."""
        return tuple(r[0] for r in self._db.execute("SELECT candidate FROM claims"))

    def note_time(self, session: int, seconds: float) -> None:
        """How long a session has lasted so far."""
        with self._transaction():
            self._note_time(session, seconds)

    def _note_time(self, session: int, seconds: float) -> None:
        self._db.execute("UPDATE sessions SET seconds = ? WHERE id = ?", (seconds, session))

    def end_session(self, session: int, seconds: float, outcome: str) -> None:
        """Close a session; what it had claimed is free again."""
        with self._transaction():
            self._note_time(session, seconds)
            self._db.execute("DELETE FROM claims")
            self._db.execute(
                "UPDATE sessions SET ended = ?, outcome = ? WHERE id = ?", (now(), outcome, session)
            )

    def sessions(self) -> list[dict[str, Any]]:
        """All sessions, oldest first."""
        rows = self._db.execute("SELECT * FROM sessions ORDER BY id")
        return [{**dict(r), "environment": json.loads(r["environment"])} for r in rows]

    def seconds_spent(self) -> float:
        """Seconds of all sessions together."""
        return float(self._db.execute("SELECT total(seconds) FROM sessions").fetchone()[0])

    # -- candidates ------------------------------------------------------------------------------

    def add_screened(self, rows: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> None:
        """Store screened points; a program that is there already makes a duplicate."""
        with self._transaction():
            for row, key in zip(rows, keys, strict=True):
                self._add(row, key)

    def _add(self, row: Mapping[str, Any], key: str) -> None:
        status, reason = row["status"], row["reason"]
        if status == "estimated":
            same = self._db.execute(
                "SELECT id FROM candidates WHERE digest = ? AND status <> 'duplicate'",
                (row["digest"],),
            ).fetchone()
            if same is not None:
                status, reason = "duplicate", f"the same program as candidate {same[0]}"
        estimate = None if row["estimate"] is None else json.dumps(row["estimate"])
        made = self._db.execute(
            "INSERT INTO candidates (key, variant, meta, status, reason, digest, seconds, bound, "
            "estimate) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                *(key, row["variant"], json.dumps(row["meta"]), status, reason),
                *(row["digest"], row["seconds"], row["bound"], estimate),
            ),
        )
        assert made.lastrowid is not None
        self._add_findings(made.lastrowid, row["findings"])

    def _add_findings(self, candidate: int, findings: Sequence[Mapping[str, Any]]) -> None:
        self._db.executemany(
            "INSERT INTO findings VALUES (?, ?, ?, ?, ?)",
            [
                (candidate, f["code"], f["fingerprint"], f["severity"], json.dumps(f))
                for f in findings
            ],
        )

    def screened_keys(self) -> set[str]:
        """Keys of the points that are stored."""
        return {r[0] for r in self._db.execute("SELECT key FROM candidates")}

    def close_screening(self, kept: Sequence[int], reason: str, *, unscreened: int = 0) -> None:
        """Keep some of the estimated candidates; the others are pruned for ``reason``.
        ``unscreened`` points were not reached."""
        with self._transaction():
            self._db.executemany(
                "UPDATE candidates SET status = 'kept' WHERE id = ?", [(i,) for i in kept]
            )
            self._db.execute(
                "UPDATE candidates SET status = 'pruned', reason = ? WHERE status = 'estimated'",
                (reason,),
            )
            self._set("screened", now())
            self._set("unscreened", str(unscreened))

    def candidates(self, status: str | None = None) -> list[CandidateRow]:
        """Candidates in order of their numbers, all or those of one status."""
        where, values = ("", ()) if status is None else (" WHERE status = ?", (status,))
        rows = self._db.execute(f"SELECT * FROM candidates{where} ORDER BY id", values)
        return [CandidateRow.of(r) for r in rows]

    def candidate(self, number: int) -> CandidateRow:
        """The candidate of that number."""
        row = self._db.execute("SELECT * FROM candidates WHERE id = ?", (number,)).fetchone()
        return CandidateRow.of(row)

    # -- evaluations -----------------------------------------------------------------------------

    def claim(self, candidates: Sequence[int], session: int) -> None:
        """Note that evaluations have begun."""
        with self._transaction():
            self._db.executemany(
                "INSERT OR REPLACE INTO claims VALUES (?, ?, ?)",
                [(c, session, now()) for c in candidates],
            )

    def finish(self, row: EvaluationRow, session: int, seconds: float) -> None:
        """Store a finished evaluation with its findings, and how long the session has lasted."""
        with self._transaction():
            self._db.execute("DELETE FROM claims WHERE candidate = ?", (row.candidate,))
            self._db.execute(
                "INSERT INTO evaluations (candidate, session, finished, status, detail, estimated, "
                "measured, spill_bytes, wall_seconds, record, verdict) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    *(row.candidate, session, now(), row.status, row.detail),
                    *(row.estimated, row.measured, row.spill_bytes, row.wall_seconds),
                    *(json.dumps(row.record), row.verdict),
                ),
            )
            self._add_findings(row.candidate, row.record.get("findings", ()))
            self._note_time(session, seconds)

    def evaluations(self) -> list[EvaluationRow]:
        """Finished evaluations in the order in which they were stored."""
        rows = self._db.execute("SELECT * FROM evaluations ORDER BY id")
        return [EvaluationRow.of(r) for r in rows]

    def add_confirmation(self, candidate: int, status: str, detail: str) -> None:
        """Store what the confirmation of a candidate found."""
        with self._transaction():
            self._db.execute(
                "INSERT OR REPLACE INTO confirmations VALUES (?, ?, ?)", (candidate, status, detail)
            )

    def confirmations(self) -> dict[int, tuple[str, str]]:
        """Status and detail by candidate."""
        return {r[0]: (r[1], r[2]) for r in self._db.execute("SELECT * FROM confirmations")}

    def findings(self) -> list[tuple[int, dict[str, Any]]]:
        """All findings with their candidates."""
        rows = self._db.execute("SELECT candidate, diagnostic FROM findings ORDER BY rowid")
        return [(r[0], json.loads(r[1])) for r in rows]

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        """All or nothing; what the disk refuses becomes a finding."""
        with writing(self.folder), transaction(self._db):
            yield
