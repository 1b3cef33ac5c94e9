"""The SQLite file of a run: opening, locking, and what the disk refuses."""

from __future__ import annotations

import fcntl
import sqlite3
from collections.abc import Iterator, Mapping
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
from cake.evolve.schema import SCHEMA
from cake.judge import database

DATABASE = "run.sqlite"
LOCK = "run.lock"


def create(folder: Path, facts: Mapping[str, str]) -> sqlite3.Connection:
    """A new database with the tables of a run and its first facts, in one transaction."""

    def add_facts(db: sqlite3.Connection) -> None:
        db.executemany("INSERT INTO facts VALUES (?, ?)", facts.items())

    db = database.create(folder / DATABASE, SCHEMA, add_facts)
    if db is None:
        raise error(
            RUN_EXISTS,
            f"{folder} holds a run already",
            helps=(f"resume it: {how_to_resume(folder)}", "or name another folder"),
        )
    return db


def connect(folder: Path) -> sqlite3.Connection:
    """The database of a run, to be written. Raises :class:`CakeError` (``not-a-run``)."""
    with _a_run():
        return database.open_to_write(folder / DATABASE, SCHEMA)


def connect_to_read(folder: Path) -> sqlite3.Connection:
    """The same for a reader, which may be there while another process writes."""
    with _a_run():
        return database.open_to_read(folder / DATABASE, SCHEMA)


@contextmanager
def _a_run() -> Iterator[None]:
    try:
        yield
    except database.FormatError as reason:
        raise error(
            NOT_A_RUN,
            str(reason),
            helps=("start a new run, or use the CAKE that wrote it",),
        ) from None


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
