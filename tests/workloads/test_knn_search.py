"""Flawed neighbour searches are caught; honest near ties are not."""

import ml_dtypes
import numpy as np
import pytest

from cake.workloads import ContractError, compare, get, problem
from tests.workloads import honest
from tests.workloads.judging import judged

SHAPE = {"B": 1, "Q": 24, "M": 300, "D": 64, "k": 6}
BF16 = np.dtype(ml_dtypes.bfloat16)


def changed(change, family="normal", shape=SHAPE):
    """The comparison of right results that ``change(distances, ids)`` has spoilt in place."""

    def make(made, inputs):
        right = honest.knn_differences(made, inputs)
        change(right["distances"], right["ids"])
        return right

    return judged("knn_search", shape, "bf16", family, make)


def wrong(result):
    return [t.tensor for t in result.tensors if not t.ok]


def test_a_repeated_index_fails_where_it_repeats():
    def repeat(distances, ids):
        ids[0, 3, 4] = ids[0, 3, 2]

    result = changed(repeat, "zero")
    assert wrong(result) == ["ids"]
    assert result.tensors[1].worst.index == (0, 3, 4)


def test_neighbours_in_the_wrong_order_fail():
    def swap(distances, ids):
        for array in (distances, ids):
            array[0, 5, [0, 1]] = array[0, 5, [1, 0]]

    assert wrong(changed(swap)) == ["distances", "ids"]


def test_equal_distances_admit_only_the_lowest_indices():
    def last_first(distances, ids):
        ids[0, 7, [0, 1]] = ids[0, 7, [1, 0]]

    assert wrong(changed(last_first, "integer_ties")) == ["ids"]
    assert changed(lambda distances, ids: None, "integer_ties").ok


@pytest.mark.parametrize("bad", [-1, 300, 2**31 - 1])
def test_an_index_out_of_range_fails_and_does_not_raise(bad):
    def spoil(distances, ids):
        ids[0, 1, 5] = bad

    result = changed(spoil)
    assert wrong(result) == ["ids"]
    assert result.tensors[1].wrong == 1


def test_a_missed_neighbour_fails_although_the_list_is_ascending():
    def miss(distances, ids):
        distances[:, :, :-1], ids[:, :, :-1] = distances[:, :, 1:].copy(), ids[:, :, 1:].copy()
        distances[:, :, -1] *= 1.01

    assert wrong(changed(miss)) == ["distances", "ids"]


def test_distances_must_ascend_even_within_their_rounding():
    def jitter(distances, ids):
        distances[0, 2, 1] = np.nextafter(distances[0, 2, 0], np.float32(0))

    assert wrong(changed(jitter, "far_from_origin")) == ["distances"]
    assert wrong(changed(jitter, "constant")) == ["distances"]


def test_scores_rounded_to_sixteen_bits_fail():
    def make(made, inputs):
        q, x = (inputs[n].astype(np.float32) for n in ("q", "x"))
        norms = np.square(q).sum(-1)[:, :, None] + np.square(x).sum(-1)[:, None]
        coarse = (norms - 2 * q @ np.swapaxes(x, 1, 2)).astype(BF16).astype(np.float32)
        return honest.nearest(coarse, made)

    assert wrong(judged("knn_search", SHAPE, "bf16", "normal", make)) == ["distances", "ids"]


def test_a_forgotten_last_row_fails():
    def make(made, inputs):
        x = inputs["x"].copy()
        x[:, -1] = 100
        return honest.knn_differences(made, {**inputs, "x": x})

    assert not judged("knn_search", SHAPE, "bf16", "approaching", make).ok


def test_a_near_tie_may_go_either_way_and_a_clear_gap_may_not():
    x = np.zeros((1, 3, 256), np.float16)
    x[0, :, 0] = [1, 1, 1.5]
    x[0, 1, 1:] = 6e-8
    inputs = {"q": np.full((1, 1, 256), 0.3, np.float16), "x": x}
    shape = {"B": 1, "Q": 1, "M": 3, "D": 256, "k": 2}
    wide = {n: a.astype(np.float64) for n, a in inputs.items()}
    distances = np.square(wide["q"] - wide["x"]).sum(-1)[0]

    def verdict(first, second):
        ids = np.array([[[first, second]]], np.int32)
        near = np.sort(distances[[first, second]]).astype(np.float32).reshape(1, 1, 2)
        return compare(get("knn_search"), shape, "f16", inputs, {"distances": near, "ids": ids}).ok

    assert [verdict(*pair) for pair in ((0, 1), (1, 0), (0, 2), (2, 0))] == [
        True,
        True,
        False,
        False,
    ]


def test_nan_counts_as_infinity_and_infinities_go_by_index():
    def swap(distances, ids):
        ids[0, 0, [0, 1]] = ids[0, 0, [1, 0]]

    result = changed(lambda distances, ids: None, "nan")
    assert result.ok
    assert wrong(changed(swap, "nan")) == ["ids"]


def test_more_neighbours_than_rows_are_refused():
    with pytest.raises(ContractError, match="violates `k <= M`"):
        problem(get("knn_search"), {**SHAPE, "k": 301}, "bf16")
