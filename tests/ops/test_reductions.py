"""Reductions and argmin along rows: order of folding, ties, NaN, and emission."""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.ir.dtypes import BF16, F32, I32, U32, DType, numpy_dtype
from cake.ir.fragments import coordinates, row_coordinates
from cake.ir.types import Fragment, RowVector, Scalar, Tuple
from cake.ops import elementwise_numpy as fn
from cake.ops.base import lookup
from cake.ops.values import from_matrix
from tests.ops.fakes import FakeUnit, Finding, Refused, compiled, make, var

ACC = Fragment(F32, (64, 32), "acc", 4)
BEST, ARG = RowVector(F32, 64, 4, True), RowVector(I32, 64, 4, True)
D, B, A = var("d", ACC), var("best", BEST), var("arg", ARG)
OPS: dict[str, Callable[[Any, Any], Any]] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def lane_columns(t: Fragment) -> list[list[tuple[int, list[int]]]]:
    """For each thread, its rows with the registers of each, columns ascending."""
    rows, cols = coordinates(t)
    out = []
    for thread in range(rows.shape[0]):
        mine: dict[int, list[int]] = {}
        for reg in np.argsort(cols[thread], kind="stable"):
            mine.setdefault(int(rows[thread, reg]), []).append(int(reg))
        out.append(sorted(mine.items()))
    return out


# -- reduce ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("op", ["sum", "min", "max"])
@pytest.mark.parametrize("dtype", [F32, I32])
def test_a_lane_folds_its_columns_in_ascending_order(op: str, dtype: DType) -> None:
    t = Fragment(dtype, (64, 32), "acc", 4)
    rng = np.random.default_rng(3)
    regs = (rng.standard_normal((128, t.registers)) * 1e6).astype(numpy_dtype(dtype))
    call = make("reduce_rows", var("x", t), op)
    assert call.type == RowVector(dtype, 64, 4, True)
    got = FakeUnit(values={"x": regs}).run(call)
    rows = row_coordinates(call.type)
    for thread, mine in enumerate(lane_columns(t)):
        for row, order in mine:
            expected = regs[thread, order[0]]
            for reg in order[1:]:
                expected = OPS[op](expected, regs[thread, reg])
            assert got[thread, list(rows[thread]).index(row)] == expected


def test_a_quad_adds_neighbours_first_and_agrees_bitwise() -> None:
    rng = np.random.default_rng(4)
    part = rng.standard_normal((128, 2)).astype(np.float32)
    call = make("reduce_quad", B, "sum")
    assert call.type == RowVector(F32, 64, 4)
    got = FakeUnit(values={"best": part}).run(call)
    quads = part.reshape(-1, 4, 2)
    expected = (quads[:, 0] + quads[:, 1]) + (quads[:, 2] + quads[:, 3])
    np.testing.assert_array_equal(got.reshape(-1, 4, 2), np.repeat(expected[:, None], 4, 1))


def test_rows_and_quad_make_the_row_sum() -> None:
    matrix = np.arange(64 * 32).reshape(64, 32).astype(np.int32)
    t = Fragment(I32, (64, 32), "acc", 4)
    call = make("reduce_quad", make("reduce_rows", var("x", t), "sum"), "sum")
    got = FakeUnit(values={"x": from_matrix(t, matrix)}).run(call)
    assert isinstance(call.type, RowVector)
    np.testing.assert_array_equal(got, matrix.sum(axis=1)[row_coordinates(call.type)])


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("reduce_rows", (D, "mean"), 'op must be one of "sum", "min", "max", got \'mean\''),
        ("reduce_rows", (var("b", Fragment(BF16, (64, 32), "acc", 4)), "sum"), "must hold f32"),
        ("reduce_rows", (var("b", Fragment(F32, (16, 8), "b", 1)), "sum"), "must have the acc lay"),
        ("reduce_rows", (B, "sum"), "fragment must be a fragment, got row_vector"),
        ("reduce_quad", (var("r", RowVector(F32, 64, 4)), "sum"), "rows is whole already"),
        ("reduce_quad", (D, "sum"), "rows must be a row vector, got fragment"),
        ("argmin_cols", (D, A, A), "best must be a row vector of f32"),
        ("argmin_cols", (D, B, B), "arg must be a row vector of i32"),
        ("argmin_cols", (D, var("r", RowVector(F32, 128, 4, True)), A), "best has 128 rows"),
        ("argmin_cols", (D, B, A, var("k", Scalar(I32, True))), "base must be the same in all thr"),
        ("argmin_cols", (D, B, A, 0, 3), "group must be one of 1, 2, 4, 8, got 3"),
        ("argmin_cols", (var("n", Fragment(F32, (64, 24), "acc", 4)), B, A, 0, 4),
         "a lane holds 6 columns of a row, which groups of 4 do not divide"),
        ("argmin_quad", (var("r", RowVector(F32, 64, 4)), A), "best is whole already"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Refused, match=message):
        make(op, *operands)


# -- argmin ----------------------------------------------------------------------------------------


def argbest(
    d: Any, best: Any, arg: Any, base: int, group: int, order: str = "argmin"
) -> tuple[Any, Any]:
    call = make(f"{order}_cols", D, B, A, base, group)
    assert call.type == Tuple((BEST, ARG))
    result: tuple[Any, Any] = FakeUnit(values={"d": d, "best": best, "arg": arg}).run(call)
    return result


VALUES = st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, np.inf, -np.inf, np.nan, 1e-40])


@settings(deadline=None, max_examples=60)
@given(
    pool=st.lists(VALUES, min_size=1, max_size=4),
    seed=st.integers(0, 2**31),
    group=st.sampled_from([1, 2, 4, 8]),
    order=st.sampled_from(["argmin", "argmax"]),
)
def test_the_lowest_column_of_the_best_value_wins(
    pool: list[float], seed: int, group: int, order: str
) -> None:
    rng = np.random.default_rng(seed)
    d = rng.choice(np.array(pool, np.float32), size=(128, ACC.registers))
    best = np.nan_to_num(rng.choice(np.array(pool, np.float32), size=(128, 2)), nan=1.0)
    fold = fn.minimum if order == "argmin" else fn.maximum
    arg = np.full((128, 2), -7, np.int32)
    got, got_arg = argbest(d, best, arg, 1000, group, order)
    _, cols = coordinates(ACC)
    rows = row_coordinates(BEST)
    for thread, mine in enumerate(lane_columns(ACC)):
        for row, registers in mine:
            r = list(rows[thread]).index(row)
            value, index = best[thread, r], -7
            for reg in registers:
                x = d[thread, reg]
                if x < value if order == "argmin" else x > value:
                    value, index = x, 1000 + cols[thread, reg]
            assert got_arg[thread, r] == index
            if group > 1:
                value = reduce(fold, [d[thread, g] for g in registers], best[thread, r])
            assert got[thread, r].view(np.uint32) == np.float32(value).view(np.uint32)


def test_rows_complete_to_the_matrix_argmin_with_ties_to_the_lowest_column() -> None:
    rng = np.random.default_rng(6)
    matrix = rng.integers(0, 4, (64, 32)).astype(np.float32)
    best, arg = np.full((128, 2), np.inf, np.float32), np.zeros((128, 2), np.int32)
    for base in (0, 32):
        best, arg = argbest(from_matrix(ACC, matrix), best, arg, base, 4)
    call = make("argmin_quad", B, A)
    assert call.type == Tuple((RowVector(F32, 64, 4), RowVector(I32, 64, 4)))
    value, index = FakeUnit(values={"best": best, "arg": arg}).run(call)
    rows = row_coordinates(RowVector(I32, 64, 4))
    np.testing.assert_array_equal(index, matrix.argmin(axis=1)[rows])
    np.testing.assert_array_equal(value, matrix.min(axis=1)[rows])


def test_without_a_better_value_the_pair_stays() -> None:
    d = np.full((128, ACC.registers), np.nan, np.float32)
    best, arg = np.full((128, 2), 3.0, np.float32), np.full((128, 2), 5, np.int32)
    got, got_arg = argbest(d, best, arg, 0, 8)
    assert (got == 3.0).all()
    assert (got_arg == 5).all()


def test_a_running_best_of_nan_is_a_finding() -> None:
    nan, arg = np.full((128, 2), np.nan, np.float32), np.zeros((128, 2), np.int32)
    with pytest.raises(Finding, match="the running best is NaN") as caught:
        argbest(np.zeros((128, ACC.registers), np.float32), nan, arg, 0, 4)
    assert (caught.value.code, caught.value.facts["threads"]) == ("CK596", 128)


# -- emission and cost -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [F32, I32, U32])
def test_reductions_compile(dtype: DType) -> None:
    x = var("x", Fragment(dtype, (64, 32), "acc", 4))
    whole = make("reduce_quad", make("reduce_rows", x, "max"), "max")
    text, built = compiled(whole, target="sm_80")
    assert "__shfl_xor_sync" in text
    facts = built.facts.entry("kernel")
    assert facts is not None
    assert facts.stack_bytes == 0


@pytest.mark.parametrize("group", [1, 2, 4, 8])
def test_argmin_compiles_without_spills_and_fuses_the_distance(group: int) -> None:
    wide = var("acc", Fragment(F32, (64, 128), "acc", 4))
    distance = make("fma", wide, -2.0, 1.0)
    base = make("mul", var("k", Scalar(I32)), 128)
    text, built = compiled(make("argmin_cols", distance, B, A, base, group), target="sm_90a")
    assert text.count("__fmaf_rn") == group
    facts = built.facts.entry("kernel")
    assert facts is not None
    assert (facts.stack_bytes, facts.spill_store_bytes) == (0, 0)


def test_argmin_quad_compiles() -> None:
    text, built = compiled(make("argmax_quad", B, A))
    assert (built.ptx or "").count("shfl.sync.bfly") == 8
    assert " > " in text


def test_larger_groups_cost_fewer_comparisons() -> None:
    primitive = lookup("argmin_cols")
    assert primitive is not None
    assert primitive.cost is not None
    wide = var("d", Fragment(F32, (64, 128), "acc", 4))
    costs = [primitive.cost(make("argmin_cols", wide, B, A, 0, g), 128).alu for g in (1, 2, 4)]
    assert costs == sorted(costs, reverse=True)
