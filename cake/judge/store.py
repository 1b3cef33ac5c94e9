"""Verdicts that are kept: rows in SQLite, requests and verdicts in files named by their content.

A row is written after the files that it names, each whole and synchronised, in one transaction. So
what :meth:`Store.add` has returned a number for survives any end of the process, and a file that no
row names is all that an interrupted call leaves. Several processes may write at once.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from cake.judge.database import FormatError, Schema, create, open_to_write, transaction
from cake.judge.evaluation import Evaluation
from cake.judge.records import RecordError, decode, encode
from cake.judge.verdict import Verdict

DATABASE = "judge.sqlite"
OBJECTS = "objects"

SCHEMA = Schema(
    migrations=(
        """\
CREATE TABLE verdicts (
  id INTEGER PRIMARY KEY,
  made TEXT NOT NULL,
  workload TEXT NOT NULL,
  candidate TEXT NOT NULL,
  entry TEXT NOT NULL,
  device TEXT NOT NULL,
  status TEXT NOT NULL,
  request_object TEXT NOT NULL,
  verdict_object TEXT NOT NULL
) STRICT;
CREATE INDEX verdicts_of ON verdicts (workload, candidate);
""".strip().removesuffix(";"),
    )
)


class StoreError(Exception):
    """The store cannot be read or written; the message names the place and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A stored verdict in short; ``made`` is ISO 8601 in UTC."""

    id: int
    made: str
    workload: str
    candidate: str
    entry: str
    device: str
    status: str


def default_folder() -> Path:
    """``$CAKE_STORE_DIR``, else the folder for data of the user (XDG Base Directory)."""
    if chosen := os.environ.get("CAKE_STORE_DIR"):
        return Path(chosen)
    data = os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share"
    return Path(data) / "cake" / "judge"


class Store:
    """The store in ``folder``, made if it is not there. A context manager.

    Raises :class:`StoreError`, here and in every method.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        path = folder / DATABASE
        try:
            (folder / OBJECTS).mkdir(parents=True, exist_ok=True)
            self._db = create(path, SCHEMA, _nothing_more) or open_to_write(path, SCHEMA)
        except (OSError, sqlite3.Error, FormatError) as failure:
            raise StoreError(f"the store in {folder} cannot be opened: {failure}") from None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._db.close()

    def add(self, request: Evaluation, verdict: Verdict) -> int:
        """Keep a verdict with what was asked for; its number, once both are safe."""
        try:
            objects = [self._put(json.dumps(encode(part))) for part in (request, verdict)]
            with transaction(self._db):
                row = self._db.execute(
                    "INSERT INTO verdicts (made, workload, candidate, entry, device, status, "
                    "request_object, verdict_object) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (
                        datetime.now(UTC).isoformat(timespec="seconds"),
                        *(verdict.workload, verdict.candidate_hash, request.candidate.entry),
                        *(verdict.device, verdict.status, *objects),
                    ),
                )
        except (OSError, sqlite3.Error) as failure:
            raise StoreError(f"the store in {self.folder} cannot be written: {failure}") from None
        assert row.lastrowid is not None
        return row.lastrowid

    def get(self, number: int) -> tuple[Evaluation, Verdict]:
        """The request and the verdict of that number."""
        row = self._db.execute(
            "SELECT request_object, verdict_object FROM verdicts WHERE id = ?", (number,)
        ).fetchone()
        if row is None:
            last = self._db.execute("SELECT max(id) FROM verdicts").fetchone()[0]
            kept = f"its last is {last}" if last else "it is empty: `cake bench` keeps verdicts"
            raise StoreError(f"the store in {self.folder} has no verdict {number}; {kept}")
        try:
            request, verdict = (json.loads(self._object(digest)) for digest in row)
            return decode(Evaluation, request), decode(Verdict, verdict)
        except (OSError, RecordError, ValueError) as damage:
            raise StoreError(f"verdict {number} in {self.folder} is damaged: {damage}") from None

    def rows(self) -> Iterator[Row]:
        """All verdicts in short, oldest first."""
        names = ", ".join(Row.__dataclass_fields__)
        for row in self._db.execute(f"SELECT {names} FROM verdicts ORDER BY id"):
            yield Row(**dict(row))

    def _path(self, digest: str) -> Path:
        return self.folder / OBJECTS / digest[:2] / digest[2:]

    def _put(self, text: str) -> str:
        """The digest of a text that is then safely in a file of that name."""
        raw = text.encode()
        digest = hashlib.sha256(raw).hexdigest()
        path = self._path(digest)
        if path.is_file():
            return digest
        path.parent.mkdir(exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(raw)
            file.flush()
            os.fsync(file.fileno())
        os.replace(file.name, path)
        for folder in (path.parent, path.parent.parent):
            _synchronise(folder)
        return digest

    def _object(self, digest: str) -> bytes:
        raw = self._path(digest).read_bytes()
        if hashlib.sha256(raw).hexdigest() != digest:
            raise ValueError(f"the file {self._path(digest)} does not have the content of its name")
        return raw


def _nothing_more(db: sqlite3.Connection) -> None:
    """The tables are all that a new store holds."""


def _synchronise(folder: Path) -> None:
    """Make the names in a folder as lasting as the files (fsync(2))."""
    handle = os.open(folder, os.O_RDONLY)
    with suppress(OSError):  # some file systems cannot; a row then still comes last
        os.fsync(handle)
    os.close(handle)
