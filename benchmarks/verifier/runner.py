"""Judging many mutants in several processes, with the same result every time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from multiprocessing import get_context
from typing import Any

from benchmarks.verifier.data_operators import operator
from benchmarks.verifier.journal import Journal
from benchmarks.verifier.judge import judge
from benchmarks.verifier.mutants import Mutant, mutants, sample
from benchmarks.verifier.subjects import subjects

Record = dict[str, Any]


def chosen(unsafe: int, values: int) -> list[Mutant]:
    """Samples of the mutants of all shipped schedules: of unsafe ones, and of changed values."""
    found = [m for s in subjects() for m in mutants(s)]
    changed = [m for m in found if operator(m.operator).values]
    broken = [m for m in found if not operator(m.operator).values]
    return [*sample(broken, unsafe), *sample(changed, values)]


def judged(tried: Sequence[Mutant], journal: Journal, processes: int) -> list[Record]:
    """The fates of mutants in their order; what the journal has is not run again."""

    def run(missing: Sequence[Mutant]) -> Iterator[Record]:
        with get_context("spawn").Pool(processes, initializer=subjects) as pool:
            for fate in pool.imap(judge, missing, chunksize=1):
                yield fate.record()

    return journal.complete([m.key for m in tried], tried, run)
