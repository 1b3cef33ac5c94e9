"""The order of proposals: deterministic, climbing, complete."""

from cake.evolve.search import Entry, HillClimb
from cake.evolve.space import MAX_POINTS, Point, neighbours, points_of
from tests.evolve.samples import variant

GRID = variant(A=tuple(range(8)), B=tuple(range(8)))


def climb(cost, *, seed: int = 0, variants=(GRID,), fail=lambda p: False) -> list[Point]:
    """Points in the order in which a search with these costs evaluates them."""
    entries = [Entry(id=i, point=p, estimate=cost(p)) for i, p in enumerate(points_of(variants, 0))]
    search = HillClimb(entries, variants, seed=seed, width=4)
    proposals, seen = search.proposals(), []
    batch = next(proposals, None)
    while batch is not None:
        seen += [entries[i].point for i in batch]
        ranks = {
            i: None if fail(entries[i].point) else (False, cost(entries[i].point), 0) for i in batch
        }
        try:
            batch = proposals.send(ranks)
        except StopIteration:
            break
    return seen


def bowl(p: Point) -> float:
    return (p.meta["A"] - 5) ** 2 + (p.meta["B"] - 2) ** 2


def test_every_candidate_is_proposed_once_in_the_end() -> None:
    seen = climb(bowl)
    assert len(seen) == len({p.key for p in seen}) == 64


def test_the_same_seed_proposes_the_same_and_another_one_does_not() -> None:
    assert climb(bowl) == climb(bowl)
    assert climb(bowl) != climb(bowl, seed=1)


def test_the_search_starts_at_the_best_estimate_of_each_variant() -> None:
    other = variant("w", A=(1, 2))
    seen = climb(
        lambda p: bowl(p) if p.variant == "v" else 100 + p.meta["A"], variants=(GRID, other)
    )
    assert seen[0] == Point(variant="v", meta={"A": 5, "B": 2})
    first_of_other = next(p for p in seen if p.variant == "w")
    assert first_of_other.meta == {"A": 1}
    assert seen.index(first_of_other) == 5  # after the start and its four neighbours


def test_a_misleading_estimate_is_left_uphill() -> None:
    """The true best is elsewhere: neighbours that turn out better are followed."""
    entries = [
        Entry(id=i, point=p, estimate=float(p.meta["A"]))
        for i, p in enumerate(points_of([GRID], 0))
    ]
    search = HillClimb(entries, [GRID], seed=0, width=4)
    proposals = search.proposals()
    batch, visited = next(proposals), []
    while len(visited) < 24:
        visited += batch
        batch = proposals.send({i: (False, -float(entries[i].point.meta["A"]), 0) for i in batch})
    assert max(entries[i].point.meta["A"] for i in visited) == 7


def test_failures_do_not_end_the_search() -> None:
    assert len(climb(bowl, fail=lambda p: p.meta["A"] > 3)) == 64
    assert len(climb(bowl, fail=lambda p: True)) == 64


def test_neighbours_are_one_step_away() -> None:
    found = [p.meta for p in neighbours(Point(variant="v", meta={"A": 0, "B": 3}), GRID.domains)]
    assert found == [{"A": 1, "B": 3}, {"A": 0, "B": 2}, {"A": 0, "B": 4}]


def test_a_large_space_is_sampled_by_seed_in_equal_shares() -> None:
    large = variant("large", A=tuple(range(100)), B=tuple(range(100)))
    points = points_of([large, GRID], 0)
    assert len([p for p in points if p.variant == "large"]) == MAX_POINTS // 2
    assert len({p.key for p in points}) == MAX_POINTS // 2 + 64
    assert points == points_of([large, GRID], 0)
    assert points != points_of([large, GRID], 1)
