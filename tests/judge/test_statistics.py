"""The statistics of times: known answers, and the coverage of the intervals on made-up data."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.judge.statistics import (
    LEAST_BLOCKS,
    LEVEL,
    Interval,
    block_ratios,
    compare_intervals,
    interval,
    is_faster,
    noise_floor,
)


def measured(rng, pairs, *, speedup, drift=0.0, first=0.0, spikes=0.0):
    """Samples of baseline and candidate in the order ABBA: the card slows by ``drift`` from start
    to end, the second of a pair by ``first``, a share of ``spikes`` takes a fifth longer."""
    sides, moment = ([], []), 0
    for pair in range(pairs):
        for place, side in enumerate((1, 0) if pair % 2 == 0 else (0, 1)):
            ms = speedup if side == 0 else 1.0
            ms *= (1 + drift * moment / (2 * pairs)) * (1 + first * place)
            ms *= math.exp(0.01 * rng.standard_normal()) * (1.2 if rng.random() < spikes else 1.0)
            sides[side].append(ms)
            moment += 1
    return block_ratios(*sides)


@pytest.mark.parametrize(
    ("speedup", "disturbance"),
    [
        (1.0, {}),
        (1.0, {"drift": 0.2, "first": 0.05}),
        (1.3, {"drift": 0.1, "spikes": 0.05}),
        (0.8, {"first": 0.1, "spikes": 0.1}),
    ],
)
def test_intervals_cover_the_truth_as_often_as_they_say(speedup, disturbance):
    rng = np.random.default_rng(7)
    trials = 200
    hits = sum(
        interval([measured(rng, 40, speedup=speedup, **disturbance) for _ in range(2)]).contains(
            speedup
        )
        for _ in range(trials)
    )
    # Three standard deviations below the level, a percentile bootstrap being a little short.
    assert hits / trials > LEVEL - 0.015 - 3 * math.sqrt(LEVEL * (1 - LEVEL) / trials)


def test_drift_and_the_advantage_of_the_first_cancel_exactly():
    rng = np.random.default_rng(3)
    for disturbance in ({"drift": 0.3}, {"first": 0.2}):
        found = interval([measured(rng, 400, speedup=1.25, **disturbance)])
        assert found.ratio == pytest.approx(1.25, rel=5e-3)


@given(
    times=st.lists(st.tuples(*[st.floats(1e-4, 1e4)] * 2), min_size=2 * LEAST_BLOCKS, max_size=60)
)
@settings(max_examples=40, deadline=None)
def test_swapping_the_sides_inverts_the_ratio_and_the_estimate_lies_inside(times):
    top, bottom = zip(*times, strict=True)
    there = interval([block_ratios(top, bottom)])
    back = interval([block_ratios(bottom, top)])
    assert there.low <= there.ratio <= there.high
    assert back.ratio == pytest.approx(1 / there.ratio)


@given(unit=st.floats(1e-3, 1e3))
@settings(max_examples=20, deadline=None)
def test_the_unit_of_time_does_not_matter(unit):
    times = np.linspace(1.0, 2.0, 24)
    plain = block_ratios(times, times[::-1])
    scaled = block_ratios(unit * times, unit * times[::-1])
    assert scaled == pytest.approx(plain)


def test_the_same_data_give_the_same_interval():
    blocks = measured(np.random.default_rng(1), 30, speedup=1.1)
    assert interval([blocks]) == interval([blocks])


def test_processes_that_disagree_widen_the_interval_to_both():
    rng = np.random.default_rng(2)
    apart = [measured(rng, 40, speedup=s) for s in (1.0, 1.2)]
    found = interval(apart)
    assert found.low <= math.exp(float(np.median(apart[0])))
    assert found.high >= math.exp(float(np.median(apart[1])))
    alike = interval([measured(rng, 40, speedup=1.1) for _ in range(2)])
    assert alike.high / alike.low < 1.03


def test_few_blocks_have_no_interval():
    assert interval([]) is None
    assert interval([np.zeros(LEAST_BLOCKS - 1)]) is None
    assert interval([np.zeros(LEAST_BLOCKS)]) == Interval(ratio=1.0, low=1.0, high=1.0)
    assert compare_intervals([np.zeros(LEAST_BLOCKS)], [np.zeros(3)]) is None


def test_samples_that_do_not_pair_or_are_no_times_are_refused():
    with pytest.raises(ValueError, match="2 and 1 samples do not pair"):
        block_ratios([1.0, 2.0], [1.0])
    with pytest.raises(ValueError, match="every time has to be positive"):
        block_ratios([1.0, 0.0], [1.0, 1.0])


def test_a_last_pair_without_a_partner_counts():
    assert block_ratios([2.0] * 3, [1.0] * 3) == pytest.approx([math.log(2)] * 2)


def test_two_measurements_against_one_baseline_compare_as_their_quotient():
    rng = np.random.default_rng(5)
    fast, slow = ([measured(rng, 60, speedup=s) for _ in range(2)] for s in (1.5, 1.2))
    found = compare_intervals(fast, slow)
    assert found.ratio == pytest.approx(1.25, rel=0.01)
    assert found.contains(1.25)
    assert not found.contains(1.0)


def test_a_win_has_its_whole_interval_above_the_noise():
    same = Interval(ratio=1.0, low=0.98, high=1.01)
    assert noise_floor(same) == pytest.approx(0.02)
    assert noise_floor(None) == 0.0
    win = Interval(ratio=1.05, low=1.021, high=1.06)
    assert is_faster(win, noise_floor(same))
    assert not is_faster(Interval(ratio=1.05, low=1.019, high=1.06), noise_floor(same))
    assert not is_faster(None, 0.0)
