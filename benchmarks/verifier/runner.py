"""Judging many mutants: several processes, a journal to resume from, the same result every time."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import cake
from benchmarks.verifier.data_operators import operator
from benchmarks.verifier.judge import Fate, judge
from benchmarks.verifier.mutants import Mutant, mutants, sample
from benchmarks.verifier.subjects import subjects

Record = dict[str, Any]


def chosen(unsafe: int, values: int) -> list[Mutant]:
    """Samples of the mutants of all shipped schedules: of unsafe ones, and of changed values."""
    found = [m for s in subjects() for m in mutants(s)]
    changed = [m for m in found if operator(m.operator).values]
    broken = [m for m in found if not operator(m.operator).values]
    return [*sample(broken, unsafe), *sample(changed, values)]


def judged(
    tried: Sequence[Mutant], journal: Path | None = None, processes: int = 1
) -> list[Record]:
    """The fates of mutants in their order; those in the journal of the same CAKE are not run again.

    A line of the journal is one fate; its first line names the sources it was made with.
    """
    known = _read(journal) if journal is not None else {}
    missing = [m for m in tried if m.key not in known]
    for fate in _fates(missing, processes):
        known[fate.key] = fate.record()
        if journal is not None:
            with journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(known[fate.key]) + "\n")
    return [known[m.key] for m in tried]


def _fates(missing: Sequence[Mutant], processes: int) -> Iterator[Fate]:
    if not missing:
        return
    with get_context("spawn").Pool(processes, initializer=subjects) as pool:
        yield from pool.imap_unordered(judge, missing, chunksize=1)


def _read(journal: Path) -> dict[str, Record]:
    head = {"cake": _sources()}
    if journal.exists():
        first, *rest = journal.read_text(encoding="utf-8").splitlines()
        if json.loads(first) == head:
            records = [json.loads(line) for line in rest]
            return {r["key"]: r for r in records}
    journal.write_text(json.dumps(head) + "\n", encoding="utf-8")
    return {}


def _sources() -> str:
    """A hash of everything that a fate depends on."""
    digest = hashlib.sha256()
    for folder in (Path(cake.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
