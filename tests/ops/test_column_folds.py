"""Folds along the columns of fragments: order, ties, the scratch of a warpgroup, emission."""

from functools import reduce
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.ir.dtypes import F32, I32, DType, numpy_dtype
from cake.ir.fragments import col_coordinates
from cake.ir.types import ColVector, Fragment, RowVector, Tuple
from cake.ops.values import from_matrix
from tests.ops.fakes import FakeTyping, FakeUnit, Finding, Refused, make, var
from tests.ops.schedules import accepted, cuda, message, run

WARP = FakeTyping(unit_threads=32)
ACC = Fragment(F32, (32, 16), "acc", 1)
BEST, ARG = ColVector(F32, 16, True), ColVector(I32, 16, True)
D, B, A = var("d", ACC), var("best", BEST), var("arg", ARG)


def fold_lanes(op: Any, matrix: Any, lane: int) -> Any:
    """The fold of a column over the rows of one lane position, ascending."""
    rows = [r for r in range(matrix.shape[0]) if r % 8 == lane]
    return reduce(op, matrix[rows])


@pytest.mark.parametrize(("op", "function"), [("sum", np.add), ("max", np.maximum)])
@pytest.mark.parametrize("dtype", [F32, I32])
def test_a_lane_folds_its_rows_and_an_octet_its_lanes(op: str, function: Any, dtype: DType) -> None:
    t = Fragment(dtype, (32, 16), "acc", 1)
    matrix = (np.random.default_rng(1).standard_normal((32, 16)) * 1e6).astype(numpy_dtype(dtype))
    part = make("reduce_cols", var("x", t), op, typing=WARP)
    assert part.type == ColVector(dtype, 16, True)
    whole = make("reduce_octet", part, op, typing=WARP)
    assert whole.type == ColVector(dtype, 16)
    got = FakeUnit(threads=32, values={"x": from_matrix(t, matrix)}).run(whole)
    lanes = [fold_lanes(function, matrix, lane) for lane in range(8)]
    # XOR distances 4, 8, 16 of the lanes are 1, 2, 4 of their rows.
    for distance in (1, 2, 4):
        lanes = [function(lanes[i], lanes[i ^ distance]) for i in range(8)]
    np.testing.assert_array_equal(got, lanes[0][col_coordinates(whole.type, 1)])


@settings(deadline=None, max_examples=40)
@given(
    pool=st.lists(st.sampled_from([0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]), min_size=1),
    seed=st.integers(0, 2**31),
    group=st.sampled_from([1, 2, 4]),
    order=st.sampled_from(["argmin", "argmax"]),
)
def test_the_lowest_row_of_the_best_value_wins(
    pool: list[float], seed: int, group: int, order: str
) -> None:
    matrix = np.random.default_rng(seed).choice(np.array(pool, np.float32), size=(32, 16))
    worst = np.float32(np.inf if order == "argmin" else -np.inf)
    call = make(f"{order}_octet", *(var(n, t) for n, t in (("b", BEST), ("a", ARG))), typing=WARP)
    assert call.type == Tuple((ColVector(F32, 16), ColVector(I32, 16)))
    running = make(f"{order}_rows", D, B, A, 100, group, typing=WARP)
    unit = FakeUnit(
        threads=32,
        values={
            "d": from_matrix(ACC, matrix),
            "best": np.full((32, 4), worst),
            "arg": np.full((32, 4), -7, np.int32),
        },
    )
    unit.values["b"], unit.values["a"] = unit.run(running)
    value, index = unit.run(call)
    better = np.less if order == "argmin" else np.greater
    for lane in range(32):
        for reg, column in enumerate(col_coordinates(BEST, 1)[lane]):
            best, where = worst, -7
            for row, x in enumerate(matrix[:, column]):
                if better(x, best):
                    best, where = x, 100 + row
            assert (value[lane, reg], index[lane, reg]) == (best, where)


def test_a_running_best_of_nan_is_a_finding() -> None:
    nan = np.full((32, 4), np.nan, np.float32)
    values = {"d": np.zeros((32, 16), np.float32), "best": nan, "arg": np.zeros((32, 4), np.int32)}
    with pytest.raises(Finding, match="the running best is NaN"):
        FakeUnit(threads=32, values=values).run(make("argmin_rows", D, B, A, typing=WARP))


# -- typing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "said"),
    [
        ("reduce_octet", (var("c", ColVector(F32, 16)), "sum"), "cols is whole already"),
        ("reduce_octet", (var("r", RowVector(F32, 16, 1, True)), "sum"), "cols must be a column"),
        ("argmin_rows", (D, var("r", RowVector(F32, 32, 1, True)), A), "best must be a column v"),
        ("argmin_rows", (D, var("c", ColVector(F32, 8)), A), "best has 8 columns, arg has 16"),
        ("argmin_rows", (D, B, A, 0, 8), "a lane holds 4 rows of a column, which groups of 8"),
    ],
)
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], said: str) -> None:
    with pytest.raises(Refused, match=said):
        make(op, *operands, typing=WARP)


WIDE = "acc = fragment(f32, (64, 16), fill=0.0)\npart = reduce_cols(acc, 'sum')\n"
DECLS = "S = smem(f32, (4, 16))\nH = smem(i32, (4, 16))\nF = smem(f32, (4, 24))"


@pytest.mark.parametrize(
    ("body", "role", "said"),
    [
        ("c = reduce_octet(part, 'sum')", "warpgroups=1", "declare S = smem(f32, (4, 16))"),
        ("c = reduce_octet(part, 'sum', scratch=F)", "warpgroups=1", "must be smem(f32, 4x16)"),
        ("c = reduce_octet(part, 'sum', scratch=H)", "warpgroups=1", "got smem(i32, 4x16)"),
        ("c = reduce_octet(part, 'sum', scratch=S)", "warps=1", "needs no scratch"),
        ("store(y[0, 0], part)", "warps=1", "make it whole with reduce_octet or argmin_octet"),
    ],
)
def test_the_scratch_of_a_warpgroup(body: str, role: str, said: str) -> None:
    assert said in message(WIDE + body, DECLS, role=role)


# -- whole programs --------------------------------------------------------------------------------

PARAMS = "x: Tensor[f32, 128, 32], y: Tensor[f32, 4, 32], at: Tensor[i32, 32]"
FOLDS = """
t = thread()
acc = fragment(f32, ({rows}, 32))
own = lanes(acc)
for i in range({rows} * 32 // {threads}, unroll=True):
    own[i] = load(x[t, i])
top = reduce_octet(reduce_cols(acc, "max"), "max"{s})
store(y[0, 0], top)
store(y[1, 0], reduce_octet(reduce_cols(acc * 0.37 - top, "sum"), "sum"{s}))
best = col_vector(f32, 32, fill=inf, partial=True)
arg = col_vector(i32, 32, fill=-1, partial=True)
best, arg = argmin_rows(acc, best, arg, base=7, group=2)
low, where = argmin_octet(best, arg{pair})
store(y[2, 0], low)
store(at[0], where)
"""


def folds(rows: int, threads: int, target: str = "sm_90a") -> Any:
    wide = threads == 128
    body = FOLDS.format(
        rows=rows,
        threads=threads,
        s=", scratch=S" if wide else "",
        pair=", scratch=S, arg_scratch=H" if wide else "",
    )
    decls = "S = smem(f32, (4, 32))\nH = smem(i32, (4, 32))" if wide else ""
    role = "warpgroups=1" if wide else "warps=1"
    return accepted(body, decls, role=role, params=PARAMS, target=target)


@pytest.mark.parametrize(("rows", "threads"), [(64, 128), (128, 128), (32, 32)])
def test_folds_of_whole_programs(rows: int, threads: int) -> None:
    t = Fragment(F32, (rows, 32), "acc", threads // 32)
    matrix = np.random.default_rng(3).integers(-5, 6, (rows, 32)).astype(np.float32)
    x = np.zeros((128, 32), np.float32)
    x[:threads, : t.registers] = from_matrix(t, matrix)
    arrays = {"x": x, "y": np.zeros((4, 32), np.float32), "at": np.zeros(32, np.int32)}
    run(folds(rows, threads), arrays)
    np.testing.assert_array_equal(arrays["y"][0], matrix.max(0))
    exact = (matrix * np.float32(0.37) - matrix.max(0)).sum(0, dtype=np.float64)
    np.testing.assert_allclose(arrays["y"][1], exact, rtol=1e-5, atol=1e-4)
    np.testing.assert_array_equal(arrays["y"][2], matrix.min(0))
    np.testing.assert_array_equal(arrays["at"], 7 + matrix.argmin(0))


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_folds_compile(target: str) -> None:
    text = cuda(folds(64, 128, target))
    assert text.count("bar_sync(1, 128)") == 2 * 3
    assert "bar_sync" not in cuda(folds(32, 32, target))
