"""The neighbour graph: what differs from the search is the row itself."""

import numpy as np
import pytest

from cake.workloads import ContractError, generate, get, problem, reference_outputs
from tests.workloads import honest
from tests.workloads.judging import judged

SHAPE = {"B": 2, "M": 60, "D": 32, "k": 6}
WITHOUT = {**SHAPE, "exclude_self": 1}


def wrong(shape, make, family="normal"):
    result = judged("knn_build", shape, "bf16", family, make)
    return [t.tensor for t in result.tensors if not t.ok]


def test_a_row_is_its_own_nearest_neighbour_unless_it_is_left_out():
    inputs = generate(get("knn_build"), SHAPE, "bf16", "normal", 1)
    own = np.arange(SHAPE["M"])
    with_self = reference_outputs(get("knn_build"), SHAPE, "bf16", inputs)
    assert (with_self["ids"][..., 0] == own).all()
    assert (with_self["distances"][..., 0] == 0).all()
    without = reference_outputs(get("knn_build"), WITHOUT, "bf16", inputs)
    assert not (without["ids"] == own[:, None]).any()
    # The rest of the list is the same, one rank further in front.
    assert (without["ids"][..., :-1] == with_self["ids"][..., 1:]).all()


def test_the_graph_is_the_search_with_the_rows_as_queries():
    inputs = generate(get("knn_build"), SHAPE, "bf16", "embeddings", 1)
    searched = reference_outputs(
        get("knn_search"),
        {**SHAPE, "Q": SHAPE["M"]},
        "bf16",
        {"q": inputs["x"], "x": inputs["x"]},
    )
    built = reference_outputs(get("knn_build"), SHAPE, "bf16", inputs)
    for name, array in built.items():
        assert (array == searched[name]).all()


def keeps_itself(made, inputs):
    """Ignores the parameter."""
    plain = problem(made.contract, made.dims, made.dtype)
    return honest.knn_graph(plain, inputs)


def drops_the_first(made, inputs):
    """Takes the nearest row for the row itself, which equal rows with lower indices are not."""
    plain = problem(made.contract, {**made.dims, "k": made.dims["k"] + 1}, made.dtype)
    return {name: array[..., 1:] for name, array in honest.knn_graph(plain, inputs).items()}


@pytest.mark.parametrize("family", ["normal", "zero", "integer_ties", "nan"])
def test_a_row_that_was_to_be_left_out_is_wrong_whatever_the_distances_are(family):
    assert "ids" in wrong(WITHOUT, keeps_itself, family)


def test_dropping_the_first_of_the_list_is_caught_where_rows_are_equal():
    assert wrong(WITHOUT, drops_the_first) == []
    assert wrong(WITHOUT, drops_the_first, "integer_ties") == ["ids"]


def test_without_itself_there_is_one_neighbour_less():
    problem(get("knn_build"), {"B": 1, "M": 4, "D": 1, "k": 4}, "bf16")
    with pytest.raises(ContractError, match="violates `k <= M - exclude_self`"):
        problem(get("knn_build"), {"B": 1, "M": 4, "D": 1, "k": 4, "exclude_self": 1}, "bf16")
