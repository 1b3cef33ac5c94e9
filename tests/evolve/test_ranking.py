"""Which candidate is better."""

from cake.evolve.ranking import rank
from cake.evolve.schema import EvaluationRow
from tests.evolve.samples import variant


def row(seconds: float, *, measured=None, spills: int = 0, status: str = "passed") -> EvaluationRow:
    return EvaluationRow(
        candidate=1,
        status=status,
        detail="",
        estimated=seconds,
        measured=measured,
        spill_bytes=spills,
        wall_seconds=1.0,
        record={},
    )


def test_a_failure_has_no_rank() -> None:
    assert rank(row(1.0, status="incorrect"), 0) is None


def test_a_spilling_candidate_comes_behind_unless_it_was_measured() -> None:
    assert rank(row(1.0, spills=8), 0) > rank(row(2.0), 0)
    assert rank(row(1.0, spills=8, measured=1.0), 0) < rank(row(2.0, measured=2.0), 0)


def test_equal_estimates_are_told_apart_by_the_authors_choice() -> None:
    assert rank(row(1.0001), 1) < rank(row(1.0), 3)
    assert rank(row(1.01), 1) > rank(row(1.0), 3)
    assert rank(row(1.0, measured=1.0001), 1) > rank(row(1.0, measured=1.0), 3)


def test_distance_counts_steps_in_the_domains() -> None:
    v = variant(A=(1, 2, 4, 8), B=("x", "y"))
    assert v.distance({"A": 1, "B": "x"}) == 0
    assert v.distance({"A": 8, "B": "y"}) == 4
