"""Which candidate is better.

A measured time decides alone. Estimates are not that exact: a kernel with spills comes behind all
without, because the model does not know what they cost, and times that agree in three digits count
as equal. Then the candidate nearer to the author's defaults is the better one: they hold knowledge
that the model lacks.
"""

from __future__ import annotations

from cake.evolve.schema import EvaluationRow
from cake.evolve.search import Rank
from cake.evolve.store import Store


def rank(row: EvaluationRow, distance: int) -> Rank | None:
    """How good an evaluation is, lower is better; None if it failed. ``distance`` counts the
    steps from the defaults."""
    if not row.passed or row.seconds is None:
        return None
    if row.measured is not None:
        return False, row.measured, distance
    return row.spill_bytes > 0, float(f"{row.seconds:.3g}"), distance


def distances(store: Store) -> dict[int, int]:
    """Steps of every candidate that was kept from its variant's defaults."""
    variants = {v.name: v for v in store.setting.variants}
    return {c.id: variants[c.variant].distance(c.meta) for c in store.candidates("kept")}


def ranked(store: Store) -> list[EvaluationRow]:
    """Evaluations that passed, the best first, without those that failed their confirmation."""
    refuted = {c for c, (status, _) in store.confirmations().items() if status != "passed"}
    steps = distances(store)
    rows = [e for e in store.evaluations() if e.candidate not in refuted]
    found = [(r, e) for e in rows if (r := rank(e, steps[e.candidate])) is not None]
    return [e for _, e in sorted(found, key=lambda pair: (pair[0], pair[1].candidate))]
