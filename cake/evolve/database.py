"""The SQLite file of a run: opening, locking, and what the disk refuses."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from cake.evolve.findings import (
    NOT_A_RUN,
    RUN_EXISTS,
    RUN_IN_USE,
    STORE_FAILED,
    error,
    how_to_resume,
)
from cake.evolve.schema import APPLICATION_ID, SCHEMA_VERSION, TABLES

DATABASE = "run.sqlite"
LOCK = "run.lock"


def create(folder: Path, facts: Mapping[str, str]) -> sqlite3.Connection:
    """A new database with the tables of a run and its first facts, in one transaction.

    An empty file, left by a process that was killed right here, is taken over.
    """
    db = _plain(folder)
    for pragma in _TO_WRITE:
        db.execute(f"PRAGMA {pragma}")
    if db.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
        db.close()
        raise error(
            RUN_EXISTS,
            f"{folder} holds a run already",
            helps=(f"resume it: {how_to_resume(folder)}", "or name another folder"),
        )
    statements = (*TABLES.split(";\n"), f"PRAGMA application_id = {APPLICATION_ID}")
    with db:
        db.execute("BEGIN IMMEDIATE")
        for statement in (*statements, f"PRAGMA user_version = {SCHEMA_VERSION}"):
            db.execute(statement)
        db.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())
    return db


def connect(folder: Path) -> sqlite3.Connection:
    """The database of a run, to be written. Raises :class:`CakeError` (``not-a-run``)."""
    return _checked(folder, _TO_WRITE)


def connect_to_read(folder: Path) -> sqlite3.Connection:
    """The same for a reader, which may be there while another process writes."""
    return _checked(folder, ("query_only = ON",))


_TO_WRITE = ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON")


def _plain(folder: Path) -> sqlite3.Connection:
    # isolation_level None: transactions begin where the store says so.
    db = sqlite3.connect(folder / DATABASE, isolation_level=None)
    db.row_factory = sqlite3.Row
    return db


def _checked(folder: Path, pragmas: Sequence[str]) -> sqlite3.Connection:
    db = _plain(folder)
    try:
        for pragma in pragmas:
            db.execute(f"PRAGMA {pragma}")
        mark = db.execute("PRAGMA application_id").fetchone()[0]
        version = db.execute("PRAGMA user_version").fetchone()[0]
    except sqlite3.DatabaseError as damage:
        db.close()
        raise error(NOT_A_RUN, f"{folder / DATABASE} cannot be read: {damage}") from None
    if (mark, version) != (APPLICATION_ID, SCHEMA_VERSION):
        db.close()
        found = f"version {version}" if mark == APPLICATION_ID else "another format"
        raise error(
            NOT_A_RUN,
            f"{folder / DATABASE} has {found}; this CAKE reads version {SCHEMA_VERSION}",
            helps=("start a new run, or use the CAKE that wrote it",),
        )
    return db


def locked(folder: Path) -> TextIO:
    """The run's lock, held until the file is closed or the process ends."""
    lock = (folder / LOCK).open("a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        raise error(
            RUN_IN_USE,
            f"another process works on the run in {folder}",
            helps=("wait for it, or stop it; finished evaluations are kept",),
        ) from None
    return lock


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turns what the disk refuses into a finding that says how to go on."""
    try:
        yield
    except (sqlite3.OperationalError, OSError) as failure:
        raise store_failed(folder, failure) from failure


def store_failed(folder: Path, failure: Exception) -> Exception:
    """The finding for a run that cannot be written."""
    return error(
        STORE_FAILED,
        f"the run in {folder} cannot be written: {failure}",
        helps=(
            "free some space, or mend what the message names; nothing that was reported is lost",
            f"go on: {how_to_resume(folder)}",
        ),
        facts={"folder": str(folder), "reason": str(failure)},
    )
