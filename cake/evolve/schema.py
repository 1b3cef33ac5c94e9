"""The tables of a run, and the records that their rows are read into."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from cake.evolve.space import Point
from cake.judge.database import Schema

_FIRST = """
CREATE TABLE facts (
  name TEXT PRIMARY KEY,
  value TEXT NOT NULL
) STRICT;

CREATE TABLE sessions (
  id INTEGER PRIMARY KEY,
  started TEXT NOT NULL,
  seconds REAL NOT NULL DEFAULT 0,
  ended TEXT,
  outcome TEXT,
  environment TEXT NOT NULL
) STRICT;

CREATE TABLE candidates (
  id INTEGER PRIMARY KEY,
  key TEXT NOT NULL UNIQUE,
  variant TEXT NOT NULL,
  meta TEXT NOT NULL,
  status TEXT NOT NULL CHECK (
    status IN ('invalid', 'unfit', 'duplicate', 'estimated', 'pruned', 'kept')
  ),
  reason TEXT NOT NULL,
  digest TEXT,
  seconds REAL,
  bound TEXT,
  estimate TEXT
) STRICT;

-- A program is evaluated once: its identity is the digest of its canonical text.
CREATE UNIQUE INDEX programs ON candidates (digest) WHERE status <> 'duplicate';

-- The evaluations in progress. A claim that outlives its session was interrupted.
CREATE TABLE claims (
  candidate INTEGER PRIMARY KEY REFERENCES candidates (id),
  session INTEGER NOT NULL REFERENCES sessions (id),
  started TEXT NOT NULL
) STRICT;

CREATE TABLE evaluations (
  id INTEGER PRIMARY KEY,
  candidate INTEGER NOT NULL UNIQUE REFERENCES candidates (id),
  session INTEGER NOT NULL REFERENCES sessions (id),
  finished TEXT NOT NULL,
  status TEXT NOT NULL,
  detail TEXT NOT NULL,
  estimated REAL,
  measured REAL,
  spill_bytes INTEGER NOT NULL,
  wall_seconds REAL NOT NULL,
  record TEXT NOT NULL,
  verdict TEXT
) STRICT;

CREATE TABLE confirmations (
  candidate INTEGER PRIMARY KEY REFERENCES candidates (id),
  status TEXT NOT NULL,
  detail TEXT NOT NULL
) STRICT;

CREATE TABLE findings (
  candidate INTEGER NOT NULL REFERENCES candidates (id),
  code TEXT NOT NULL,
  fingerprint TEXT NOT NULL,
  severity TEXT NOT NULL,
  diagnostic TEXT NOT NULL
) STRICT;

CREATE INDEX findings_of ON findings (candidate);
"""

SCHEMA = Schema(migrations=(_FIRST,))


@dataclass(frozen=True, slots=True, kw_only=True)
class CandidateRow:
    """A point of the space after screening. ``seconds`` is its first estimate."""

    id: int
    variant: str
    meta: Mapping[str, Any]
    status: str
    reason: str
    digest: str | None
    seconds: float | None
    bound: str | None
    estimate: Mapping[str, Any] | None

    @property
    def point(self) -> Point:
        return Point(variant=self.variant, meta=self.meta)

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> CandidateRow:
        """The record of a row of ``candidates``."""
        return cls(
            id=row["id"],
            variant=row["variant"],
            meta=json.loads(row["meta"]),
            status=row["status"],
            reason=row["reason"],
            digest=row["digest"],
            seconds=row["seconds"],
            bound=row["bound"],
            estimate=None if row["estimate"] is None else json.loads(row["estimate"]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationRow:
    """A finished evaluation.

    ``estimated`` seconds use the built registers; ``measured`` are the judge's median. ``record``
    holds everything that the worker found (:class:`cake.evolve.evaluate.Examined`).
    ``verdict`` is the judge's, as JSON text.
    """

    candidate: int
    status: str
    detail: str
    estimated: float | None
    measured: float | None
    spill_bytes: int
    wall_seconds: float
    record: Mapping[str, Any]
    verdict: str | None = None
    finished: str = ""

    @property
    def passed(self) -> bool:
        return self.status == "passed"

    @property
    def seconds(self) -> float | None:
        """What the candidate is ranked by: the measured time, else the estimate."""
        return self.estimated if self.measured is None else self.measured

    @classmethod
    def of(cls, row: Mapping[str, Any]) -> EvaluationRow:
        """The record of a row of ``evaluations``."""
        return cls(
            candidate=row["candidate"],
            status=row["status"],
            detail=row["detail"],
            estimated=row["estimated"],
            measured=row["measured"],
            spill_bytes=row["spill_bytes"],
            wall_seconds=row["wall_seconds"],
            record=json.loads(row["record"]),
            verdict=row["verdict"],
            finished=row["finished"],
        )
