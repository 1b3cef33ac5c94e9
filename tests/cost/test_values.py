"""Trip counts and conditions at concrete dimensions."""

import numpy as np
import pytest

from cake.cost.values import samples


@pytest.mark.parametrize("n", [0, 1, 5, 16, 17, 100, 12345])
def test_samples_stand_for_every_position(n: int) -> None:
    positions, weights = samples(n, 16)
    assert weights.sum() == pytest.approx(n)
    assert len(set(positions.tolist())) == len(positions) == len(weights)
    assert all(0 <= p < n for p in positions)


def test_the_ends_of_a_long_range_keep_their_weight() -> None:
    positions, weights = samples(1000, 16)
    assert (positions[0], weights[0]) == (0, 1)
    assert (positions[-1], weights[-1]) == (999, 1)


def test_three_samples_give_the_mean_of_a_linear_function() -> None:
    positions, weights = samples(1001, 3)
    assert np.dot(positions, weights) / 1001 == pytest.approx(500, rel=0.01)
