"""What the verifier says of generated schedules."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from typing import Any

from benchmarks.verifier.generate import Generated, different, unsafe, valid
from benchmarks.verifier.journal import Journal
from benchmarks.verifier.judge import OutOfTime, time_limit
from benchmarks.verifier.layers import complete, errors
from cake.lang.elaborate import parse

MAX_SECONDS = 20.0

Record = dict[str, Any]


def verdict(made: Generated) -> Record:
    """The verdict on a generated schedule: accepted, incomplete, rejected, refused or timeout."""
    status, code, message = "timeout", "", ""
    try:
        with time_limit(MAX_SECONDS):
            status, code, message = _verdict(made.text)
    except OutOfTime:
        pass
    return {
        "family": made.family,
        "fault": made.fault,
        "status": status,
        "code": code,
        "message": message,
        "text": made.text,
    }


def _verdict(text: str) -> tuple[str, str, str]:
    parsed = parse(text, "generated.py")
    if not parsed.ok:
        return "refused", parsed.diagnostics[0].code, parsed.diagnostics[0].message
    (program,) = parsed.programs
    found = errors(program)
    if found:
        return "rejected", found[0].code, found[0].message
    return "accepted" if complete(program) else "incomplete", "", ""


def generated(count: int, journal: Journal, processes: int) -> tuple[list[Record], list[Record]]:
    """The verdicts on ``count`` valid and ``count`` unsafe schedules, all of different texts."""
    right, wrong = different(valid, count), different(unsafe, count)
    both = [*right, *wrong]

    def run(missing: Sequence[Generated]) -> Iterator[Record]:
        with get_context("spawn").Pool(processes) as pool:
            yield from pool.imap(verdict, missing, chunksize=16)

    judged = journal.complete([_key(g) for g in both], both, run)
    return judged[: len(right)], judged[len(right) :]


def _key(made: Generated) -> str:
    return hashlib.sha256(f"{made.fault}\n{made.text}".encode()).hexdigest()[:16]


def counted(rows: Sequence[Record]) -> dict[str, dict[str, int]]:
    """Verdicts per family and fault."""
    table: dict[str, Counter[str]] = {}
    for row in rows:
        name = row["family"] + (f": {row['fault']}" if row["fault"] else "")
        table.setdefault(name, Counter())[row["status"]] += 1
    return {name: dict(table[name]) for name in sorted(table)}
