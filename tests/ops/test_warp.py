"""Warp-level primitives and the top-k insertion: typing, meaning, emission."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.codegen.compile import compile_program
from cake.ir.dtypes import BF16, BOOL, F32, I32, I64, U32, numpy_dtype
from cake.ir.types import RegArray, Scalar
from cake.ops.base import lookup
from tests.ops.fakes import FakeTyping, FakeUnit, Refused, make, var
from tests.ops.schedules import one_role, program

WARP = FakeTyping(unit_threads=32)
LANES = np.arange(32)
X = var("x", Scalar(F32, True))
N = var("n", Scalar(I32, True))


def run(op: str, *operands: Any, threads: int = 32, **values: Any) -> Any:
    call = make(op, *operands, typing=FakeTyping(unit_threads=threads))
    return FakeUnit(threads=threads, values=values).run(call)


# -- typing ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "operands", "dtype", "in_warp"),
    [
        ("warp_sum", (X,), F32, False),
        ("warp_max", (N,), I32, False),
        ("any_sync", (var("p", Scalar(BOOL, True)),), BOOL, False),
        ("ballot", (var("p", Scalar(BOOL, True)),), U32, False),
        ("shfl", (X, 0), F32, False),
        ("shfl", (X, N), F32, True),
        ("shfl_xor", (N, 1), I32, True),
        ("warp_scan", (X,), F32, True),
        ("elect", (), BOOL, True),
    ],
)
def test_one_value_a_warp_is_uniform_in_a_warp_only(
    op: str, operands: tuple[Any, ...], dtype: Any, in_warp: bool
) -> None:
    assert make(op, *operands, typing=WARP).type == Scalar(dtype, in_warp)
    assert make(op, *operands).type == Scalar(dtype, True)


@pytest.mark.parametrize(
    ("op", "operands", "message"),
    [
        ("warp_sum", (var("w", Scalar(I64)),), "x must be a scalar of f32, i32, u32, got i64"),
        ("warp_scan", (var("h", Scalar(BF16)),), "x must be a scalar of f32, i32, u32, got bf16"),
        ("warp_max", (var("r", RegArray(F32, 4)),), "x must be a scalar of f32, i32, u32"),
        ("shfl", (X, 32), r"source must be in \[0, 32\), got 32"),
        ("shfl_up", (X, X), "delta must be an integer scalar, got f32"),
        ("shfl_up", (X, var("w", Scalar(I64))), "delta must be i32, got i64"),
        ("any_sync", (N,), "predicate must be a bool, got i32"),
        ("topk_insert", (X, X, X, N), "values must be registers of f32"),
        ("topk_insert", (var("v", RegArray(F32, 4)), var("k", RegArray(I32, 3)), X, N),
         "values has 4 registers, indices has 3"),
        ("topk_insert", (var("v", RegArray(F32, 4)), var("k", RegArray(I32, 4)), N, N),
         "expected f32, got i32"),
    ],
)  # fmt: skip
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], message: str) -> None:
    with pytest.raises(Refused, match=message):
        make(op, *operands, typing=WARP)


# -- meaning ---------------------------------------------------------------------------------------


def test_shuffles_read_the_named_lane() -> None:
    x = np.arange(128, dtype=np.int32)
    first = np.repeat([0, 32, 64, 96], 32)
    np.testing.assert_array_equal(run("shfl", N, 3, threads=128, n=x), first + 3)
    np.testing.assert_array_equal(run("shfl_xor", N, 5, threads=128, n=x), x ^ 5)
    up = run("shfl_up", N, 2, threads=128, n=x)
    down = run("shfl_down", N, 31, threads=128, n=x)
    np.testing.assert_array_equal(up[:32], [0, 1, *range(30)])
    np.testing.assert_array_equal(down[32:64], [63, *range(33, 64)])


def test_a_shuffle_may_name_another_lane_in_each_thread() -> None:
    source = ((LANES * 7) % 32).astype(np.int32)
    got = run("shfl", X, N, x=LANES.astype(np.float32) * 2, n=source)
    np.testing.assert_array_equal(got, source * 2)


def test_votes() -> None:
    p = var("p", Scalar(BOOL, True))
    one = LANES == 31
    assert run("any_sync", p, p=one).shape == ()
    assert run("any_sync", p, p=one)
    assert not run("all_sync", p, p=one)
    assert run("ballot", p, p=one) == np.uint32(1 << 31)
    four = np.concatenate([one, ~one, one, one])
    bits = [1 << 31, (1 << 31) - 1, 1 << 31, 1 << 31]
    np.testing.assert_array_equal(run("ballot", p, threads=128, p=four), np.repeat(bits, 32))


def test_warp_sum_folds_by_halves() -> None:
    rng = np.random.default_rng(2)
    x = (rng.standard_normal(32) * 10.0 ** rng.integers(-4, 5, 32)).astype(np.float32)
    halves = x
    while len(halves) > 1:
        middle = len(halves) // 2
        halves = halves[:middle] + halves[middle:]
    got = run("warp_sum", X, x=x)
    assert got.shape == ()
    assert got == halves[0]
    assert got.dtype == np.float32


def test_warp_folds_of_integers_and_nan() -> None:
    n = np.full(32, 2**30, np.int32)
    assert run("warp_sum", N, n=n) == 0
    assert run("warp_min", N, n=-LANES.astype(np.int32)) == -31
    x = np.full(32, np.nan, np.float32)
    x[7] = -2.0
    assert run("warp_max", X, x=x) == -2.0


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(-(2**31), 2**31 - 1), min_size=32, max_size=32))
def test_warp_scan_sums_what_came_before(values: list[int]) -> None:
    got = run("warp_scan", N, n=np.array(values, np.int32))
    expected = np.cumsum(np.array(values, np.int64)).astype(np.int32)
    np.testing.assert_array_equal(got, expected)


def test_warp_scan_of_floats_adds_in_the_order_of_the_distances() -> None:
    x = np.zeros(32, np.float32)
    x[:3] = [2.0**24, 1.0, 1.0]
    # Lane 2 adds lane 1 first, so its two ones survive next to 2^24; lane 1 rounds its one away.
    assert run("warp_scan", X, x=x)[:3].tolist() == [2.0**24, 2.0**24, 2.0**24 + 2]


def test_elect_is_lane_0() -> None:
    assert np.nonzero(run("elect", threads=128))[0].tolist() == [0, 32, 64, 96]


@settings(deadline=None)
@given(
    k=st.integers(1, 6),
    items=st.lists(st.sampled_from([0.0, -0.0, 1.0, 2.0, 3.0, np.nan, np.inf]), max_size=20),
)
def test_top_k_keeps_the_smallest_in_order_of_arrival(k: int, items: list[float]) -> None:
    values = np.full((32, k), np.inf, np.float32)
    indices = np.full((32, k), -1, np.int32)
    call = make(
        "topk_insert", var("v", RegArray(F32, k)), var("k", RegArray(I32, k)), X, N, typing=WARP
    )
    unit = FakeUnit(threads=32, values={"v": values, "k": indices})
    unit.active = LANES != 5
    for n, item in enumerate(items):
        unit.values["x"], unit.values["n"] = np.float32(item), np.int32(n)
        unit.run(call)
    kept = [(x, n) for n, x in enumerate(items) if x < np.inf]
    kept = (sorted(kept, key=lambda p: p[0]) + [(np.inf, -1)] * k)[:k]
    np.testing.assert_array_equal(values[0], [x for x, _ in kept])
    np.testing.assert_array_equal(indices[0], [n for _, n in kept])
    assert (indices[5] == -1).all()


# -- emission --------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_warp_primitives_assemble(target: str) -> None:
    body = """
    n = lane()
    e = cast(n, f32)
    e = e + warp_sum(e) + warp_min(e) + warp_max(e) + warp_scan(e)
    n = n + warp_sum(n) + warp_min(n) + warp_max(n) + warp_scan(n)
    n = n + shfl(n, 3) + shfl_xor(n, 1) + shfl_up(n, 2) + shfl_down(n, 4)
    b = ballot(e > 0.0)
    if any_sync(e > 1.0) and all_sync(n > 0):
        n = n + cast(b, i32)
    if elect():
        store(y[0, 0], e)
    store(c[n], n)
    """
    made = compile_program(program(one_role(body), target=target))
    assert made.diagnostics == ()
    for word in ("redux.sync.add.s32", "redux.sync.min.s32", "__shfl_xor_sync", "__ballot_sync"):
        assert word in made.source


def test_top_k_assembles_without_local_memory() -> None:
    body = """
    best = registers(f32, 8, fill=inf)
    k = registers(i32, 8, fill=-1)
    for i in range(M):
        topk_insert(best, k, load(w[i]), i)
    for j in static_range(8):
        store(c[j], k[j])
    """
    made = compile_program(program(one_role(body), target="sm_80"))
    facts = made.build.facts.entry("kernel_kernel")
    assert facts is not None
    assert (facts.stack_bytes, facts.spill_store_bytes) == (0, 0)
    assert made.diagnostics == ()


def test_cost_of_a_float_fold_is_five_exchanges_and_of_an_integer_one() -> None:
    primitive = lookup("warp_sum")
    assert primitive is not None
    assert primitive.cost is not None
    assert primitive.cost(make("warp_sum", X), 32).smem == 5 * 32 * 4
    assert primitive.cost(make("warp_sum", N), 32).smem == 32 * 4
    assert numpy_dtype(U32) == np.uint32
