"""Each hazard as a right schedule and a broken one: the finding, at its line, in each order."""

import pytest

from cake.simulate import ORDERS
from tests.simulate.hazards import HAZARDS, Hazard
from tests.simulate.programs import finding, line_of, run

NAMES = [h.name for h in HAZARDS]
TWINS = [(h, order) for h in HAZARDS for order in h.orders]


@pytest.mark.parametrize(("hazard", "order"), TWINS, ids=[f"{h.name}-{o}" for h, o in TWINS])
def test_the_broken_schedule_has_the_finding_at_the_line(hazard: Hazard, order: str) -> None:
    found = finding(hazard.bad, order=order, **hazard.options)
    assert found.code == hazard.code, found.message
    assert found.span is not None
    assert found.span.line == line_of(hazard.bad, hazard.at), found.message
    assert hazard.says in found.message
    if hazard.related:
        assert line_of(hazard.bad, hazard.related) in [r.span.line for r in found.related]


@pytest.mark.parametrize("hazard", HAZARDS, ids=NAMES)
def test_the_right_schedule_has_none_in_any_order(hazard: Hazard) -> None:
    for order in ORDERS:
        run(hazard.good, order=order, **hazard.options)


def test_no_two_hazards_have_one_name() -> None:
    assert len(set(NAMES)) == len(NAMES)
