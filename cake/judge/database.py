"""SQLite files with a mark, a version and migrations: what the judge's store and runs of the search
share.

The databases are in write-ahead mode with full synchronisation: a transaction that was committed
survives the end of the process and of the machine. (SQLite documentation, "Write-Ahead Logging",
"PRAGMA synchronous".)
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

APPLICATION_ID = 0x43414B45
"""``CAKE`` in ASCII: marks the file for ``PRAGMA application_id``."""

BUSY_SECONDS = 30.0
_TO_WRITE = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")


class FormatError(Exception):
    """The file is damaged, of another kind, or of a version that this code does not read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Schema:
    """``migrations[i]`` are the statements that lead from version ``i`` to ``i + 1``; a new file
    goes through all of them. One that was released is never changed."""

    migrations: tuple[str, ...]

    @property
    def version(self) -> int:
        return len(self.migrations)


def create(
    path: Path, schema: Schema, also: Callable[[sqlite3.Connection], None]
) -> sqlite3.Connection | None:
    """A new database at ``path``, with what ``also`` adds in the same transaction; None if there
    are tables in it already. An empty file, left by a process that was killed, is taken over."""
    db = _plain(path)
    for pragma in _TO_WRITE:
        db.execute(f"PRAGMA {pragma}")
    with transaction(db):
        if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0] == 0:
            _migrate(db, schema, 0)
            also(db)
            return db
    db.close()
    return None


def open_to_write(path: Path, schema: Schema) -> sqlite3.Connection:
    """The database at ``path``, brought to the version of ``schema``.

    Raises :class:`FormatError`.
    """
    db, version = _checked(path, schema, _TO_WRITE)
    if version < schema.version:
        with transaction(db):
            # Another process may have been faster.
            _migrate(db, schema, db.execute("PRAGMA user_version").fetchone()[0])
    return db


def open_to_read(path: Path, schema: Schema) -> sqlite3.Connection:
    """The same for a reader, which may be there while another process writes. An older version is
    not read: it takes a writer to migrate it."""
    db, version = _checked(path, schema, ("query_only = ON",))
    if version < schema.version:
        db.close()
        raise FormatError(f"{path} has version {version}, not {schema.version}")
    return db


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[None]:
    """All or nothing."""
    with db:
        db.execute("BEGIN IMMEDIATE")
        yield


def _plain(path: Path) -> sqlite3.Connection:
    # isolation_level None: transactions begin where the code says so.
    db = sqlite3.connect(path, isolation_level=None, timeout=BUSY_SECONDS)
    db.row_factory = sqlite3.Row
    return db


def _checked(
    path: Path, schema: Schema, pragmas: tuple[str, ...]
) -> tuple[sqlite3.Connection, int]:
    db = _plain(path)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        mark = db.execute("PRAGMA application_id").fetchone()[0]
        version = int(db.execute("PRAGMA user_version").fetchone()[0])
    except sqlite3.DatabaseError as damage:
        db.close()
        raise FormatError(f"{path} cannot be read: {damage}") from None
    if mark != APPLICATION_ID or not 0 < version <= schema.version:
        db.close()
        found = f"version {version}" if mark == APPLICATION_ID else "another format"
        raise FormatError(f"{path} has {found}; this CAKE reads version {schema.version}")
    return db, version


def _migrate(db: sqlite3.Connection, schema: Schema, version: int) -> None:
    for statements in schema.migrations[version:]:
        for statement in statements.split(";\n"):
            db.execute(statement)
    db.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    db.execute(f"PRAGMA user_version = {schema.version}")
