"""Sizes and scenarios: which trip counts, tiles and outcomes are tried."""

from __future__ import annotations

from cake.lang.elaborate import parse
from cake.verify.phase.expand import Expander
from cake.verify.phase.scenarios import MAX_CHOICES, Chooser, Scenario, Scenarios, choosers, implied
from tests.verify_phase.schedules import EXCHANGE, GEMM, LENGTHS, RAW, edited


def scenarios(text: str) -> Scenarios:
    (program,) = parse(text, "example.py").programs
    return Scenarios(Expander(program))


def trips(found: Scenarios, scenario: Scenario) -> list[int]:
    """Trip counts of the loops through rings at a scenario's first tile."""
    state = found.sizes.values(scenario.sizes)
    return list(found.sizes.profile(state).trips.values())


def test_every_desired_trip_count_occurs() -> None:
    """A ring of three stages: 0, 1, 2, S-1, S, S+1, 2S, 2S+1; a product is peeled off one loop."""
    found = scenarios(GEMM)
    seen = [set(), set()]  # type: list[set[int]]
    for s in found.all():
        for counts, n in zip(seen, trips(found, s), strict=True):
            counts.add(n)
    filled, used = seen
    assert {1, 2, 3, 4, 6, 7} <= filled
    assert {0, 1, 2, 3, 4, 6, 7} <= used
    assert 0 not in filled  # require(K > 0)


def test_what_is_passed_over_is_the_beginning_of_a_longer_walk_of_the_same_tiles() -> None:
    every = list(scenarios(GEMM).all())
    skipped = implied(every)
    run = [s for number, s in enumerate(every) if number not in skipped]
    assert len(run) < len(every) * 2 / 3
    for number in skipped:
        s = every[number]
        assert any(r.kind == s.kind and r.tiles >= s.tiles for r in run)
    assert all(s in run for s in every if s.kind is None)


def test_one_to_three_tiles_occur_with_short_and_long_loops() -> None:
    found = scenarios(GEMM)
    seen = {(s.tiles, min(trips(found, s)) > 1) for s in found.all()}
    assert {(t, long) for t in (1, 2, 3) for long in (False, True)} <= seen


def test_sizes_respect_the_guards_and_equalities() -> None:
    text = edited(RAW, ("    require(K % 32 == 0)\n", "    require(K % 32 == 0, K >= 96, M < 3)\n"))
    every = list(scenarios(text).all())
    assert every
    assert all(s.sizes["K"] % 32 == 0 and s.sizes["K"] >= 96 for s in every)
    assert max(s.sizes["M"] for s in every) == 2
    assert all(
        cta.values["K"] == s.sizes["K"] for s in every for cta in s.ctas
    )  # one value for all CTAs


def test_the_smallest_sizes_come_first() -> None:
    found = [s for s in scenarios(GEMM).all() if s.tiles <= 3]
    total = [sum(s.sizes.values()) for s in found]
    assert total == sorted(total)
    assert found[0].sizes == {"M": 1, "K": 1}


def test_a_cluster_is_tried_whole_and_straddling_the_end() -> None:
    whole = {len(s.ctas) for s in scenarios(EXCHANGE).all()}
    assert whole == {2}
    odd = {len(s.ctas) for s in scenarios(edited(EXCHANGE, ("M % 2 == 0", "M > 0"))).all()}
    assert odd == {1, 2}


def test_elements_have_one_value_in_all_roles_and_all_options_are_tried() -> None:
    found = scenarios(LENGTHS)
    first = next(iter(found.all()))
    made = []
    for chooser in choosers(found.data_options()):
        found.expander.expand(first.ctas, chooser)
        made.append(dict(chooser.made))
        assert {role for role, read in chooser.read.items() if read} == {"loader", "math"}
        assert chooser.disagreeing() is None
    values = {found.data_options()[i] for m in made for i in m.values()}
    assert values == set(found.data_options())
    assert {0, 1, 64, 65} <= values


def test_many_choices_are_drawn_from_a_fixed_seed() -> None:
    def draw() -> list[list[int]]:
        drawn = []
        for chooser in choosers([5, 6, 7]):
            drawn.append([chooser.element("t", (i,)) for i in range(6)])
        return drawn

    assert draw() == draw()
    assert len(draw()) == MAX_CHOICES
    assert len({tuple(d) for d in draw()}) > MAX_CHOICES // 2


def test_few_choices_are_all_tried() -> None:
    drawn = [(c.element("t", (0,)), c.element("t", (1,))) for c in choosers([5, 6, 7])]
    assert sorted(drawn) == [(a, b) for a in (5, 6, 7) for b in (5, 6, 7)]


def test_a_script_is_followed_by_first_options() -> None:
    chooser = Chooser([5, 6, 7], [2])
    assert [chooser.element("t", (i,)) for i in (0, 1, 0)] == [7, 5, 7]
    assert chooser.following() == [2, 1]
