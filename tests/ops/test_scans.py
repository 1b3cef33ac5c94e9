"""Scans along rows, columns and register arrays: values, rounding order, emission."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cake.ir.dtypes import BF16, F32, I32, I64, U32, DType, numpy_dtype
from cake.ir.types import Fragment, RegArray, Scalar
from cake.ops.values import from_matrix, to_matrix
from tests.ops.fakes import FakeTyping, FakeUnit, Refused, make, var
from tests.ops.schedules import accepted, cuda, message, run

WARP = FakeTyping(unit_threads=32)
FOLDS: dict[str, Any] = {"sum": np.add, "min": np.minimum, "max": np.maximum}


def prefix(op: str, x: Any, axis: int, exclusive: bool) -> Any:
    """numpy's prefix fold; an exclusive one begins with the identity."""
    whole = FOLDS[op].accumulate(x, axis=axis, dtype=x.dtype)
    if not exclusive:
        return whole
    limits = np.iinfo(x.dtype)
    first = {"sum": 0, "min": limits.max, "max": limits.min}[op]
    shifted = np.roll(whole, 1, axis=axis)
    shifted[(slice(None),) * axis + (0,)] = first
    return shifted


@settings(deadline=None, max_examples=40)
@given(
    seed=st.integers(0, 2**31),
    op=st.sampled_from(["sum", "min", "max"]),
    exclusive=st.booleans(),
    dtype=st.sampled_from([I32, U32]),
    along=st.sampled_from(["rows", "cols"]),
)
def test_integer_scans_are_prefix_folds(
    seed: int, op: str, exclusive: bool, dtype: DType, along: str
) -> None:
    t = Fragment(dtype, (32, 24), "acc", 1)
    kind = numpy_dtype(dtype)
    limits = np.iinfo(kind)
    matrix = np.random.default_rng(seed).integers(limits.min, limits.max, (32, 24)).astype(kind)
    call = make(f"scan_{along}", var("x", t), op, exclusive, typing=WARP)
    assert call.type == t
    got = FakeUnit(threads=32, values={"x": from_matrix(t, matrix)}).run(call)
    expected = prefix(op, matrix, 1 if along == "rows" else 0, exclusive)
    np.testing.assert_array_equal(to_matrix(t, got), expected)


def test_floats_round_block_by_block() -> None:
    t = Fragment(F32, (16, 16), "acc", 1)
    row = np.zeros(16, np.float32)
    row[[0, 2, 3, 8]] = [2.0**24, 1.0, 1.0, 0.5]
    matrix = np.tile(row, (16, 1))
    got = FakeUnit(threads=32, values={"x": from_matrix(t, matrix)}).run(
        make("scan_rows", var("x", t), typing=WARP)
    )
    # A lane adds its pair first, so its two ones survive next to 2^24 in what follows it; the half
    # of the next block does not.
    expected = [2.0**24] * 4 + [2.0**24 + 2] * 12
    np.testing.assert_array_equal(to_matrix(t, got)[0], expected)


@settings(deadline=None, max_examples=30)
@given(
    values=st.lists(st.integers(-(2**31), 2**31 - 1), min_size=1, max_size=9),
    op=st.sampled_from(["sum", "min", "max"]),
    exclusive=st.booleans(),
)
def test_register_arrays_and_warps(values: list[int], op: str, exclusive: bool) -> None:
    x = np.tile(np.array(values, np.int32), (32, 1))
    t = RegArray(I32, len(values))
    call = make("scan_registers", var("x", t), op, exclusive, typing=WARP)
    got = FakeUnit(threads=32, values={"x": x}).run(call)
    np.testing.assert_array_equal(got, prefix(op, x, 1, exclusive))
    lanes = np.resize(x[0], 32)
    call = make("warp_scan", var("n", Scalar(I32, True)), op, exclusive, typing=WARP)
    got = FakeUnit(threads=32, values={"n": lanes}).run(call)
    np.testing.assert_array_equal(got, prefix(op, lanes, 0, exclusive))


@pytest.mark.parametrize(
    ("op", "operands", "said"),
    [
        ("scan_rows", (var("x", Fragment(BF16, (16, 16), "acc", 1)),), "must hold f32, i32, u32"),
        ("scan_rows", (var("x", Fragment(F32, (16, 16), "b", 1)),), "must have the acc layout"),
        ("scan_cols", (var("x", Fragment(F32, (16, 16), "acc", 1)), "mean"), "op must be one of"),
        ("scan_registers", (var("x", RegArray(I64, 4)),), "must be registers of f32, i32, u32"),
        ("scan_registers", (var("x", RegArray(F32, 4)), "sum", 1), "exclusive must be True or Fa"),
        ("warp_scan", (var("x", Scalar(F32)), "sum", 1), "exclusive must be True or False, got 1"),
    ],
)
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], said: str) -> None:
    with pytest.raises(Refused, match=said):
        make(op, *operands, typing=WARP)


def test_a_warpgroup_needs_a_scratch() -> None:
    body = "acc = fragment(f32, (64, 16), fill=0.0)\nacc = scan_cols(acc)"
    assert "declare S = smem(f32, (4, 16))" in message(body, role="warpgroups=1")


# -- whole programs --------------------------------------------------------------------------------

PARAMS = "x: Tensor[i32, 128, 48], y: Tensor[i32, 4, 128, 32]"
SCANS = """
t = thread()
acc = fragment(i32, ({rows}, 32))
own = lanes(acc)
for i in range({rows} * 32 // {threads}, unroll=True):
    own[i] = load(x[t, i])
store(y[0, 0, 0], scan_rows(acc + 1))
store(y[1, 0, 0], scan_rows(acc, "max", exclusive=True))
store(y[2, 0, 0], scan_cols(acc * 3{s}))
store(y[3, 0, 0], scan_cols(acc, "min", exclusive=True{s}))
"""


def scans(rows: int, threads: int, target: str = "sm_90a") -> Any:
    wide = threads == 128
    body = SCANS.format(rows=rows, threads=threads, s=", scratch=S" if wide else "")
    role = "warpgroups=1" if wide else "warps=1"
    decls = "S = smem(i32, (4, 32))" if wide else ""
    return accepted(body, decls, role=role, params=PARAMS, target=target)


@pytest.mark.parametrize(("rows", "threads"), [(64, 128), (128, 128), (48, 32)])
def test_scans_of_whole_programs(rows: int, threads: int) -> None:
    t = Fragment(I32, (rows, 32), "acc", threads // 32)
    matrix = np.random.default_rng(5).integers(-(2**29), 2**29, (rows, 32)).astype(np.int32)
    x = np.zeros((128, 48), np.int32)
    x[:threads, : t.registers] = from_matrix(t, matrix)
    arrays = {"x": x, "y": np.zeros((4, 128, 32), np.int32)}
    run(scans(rows, threads), arrays)
    y = arrays["y"][:, :rows]
    np.testing.assert_array_equal(y[0], prefix("sum", matrix + np.int32(1), 1, False))
    np.testing.assert_array_equal(y[1], prefix("max", matrix, 1, True))
    np.testing.assert_array_equal(y[2], prefix("sum", matrix * np.int32(3), 0, False))
    np.testing.assert_array_equal(y[3], prefix("min", matrix, 0, True))


REGISTERS = """
t = thread()
own = registers(i32, 8)
for i in static_range(8):
    own[i] = load(x[t, i])
a = scan_registers(own * 2)
b = scan_registers(own, "min", exclusive=True)
for i in static_range(8):
    store(y[0, t, i], a[i])
    store(y[1, t, i], b[i])
store(y[2, t, 0], warp_scan(own[0], "max", exclusive=True))
store(y[2, t, 1], warp_scan(own[1], "min"))
"""


def test_a_program_of_register_and_warp_scans() -> None:
    x = np.random.default_rng(6).integers(-(2**20), 2**20, (128, 48)).astype(np.int32)
    arrays = {"x": x, "y": np.zeros((4, 128, 32), np.int32)}
    made = accepted(REGISTERS, role="warpgroups=1", params=PARAMS)
    run(made, arrays)
    y = arrays["y"]
    np.testing.assert_array_equal(y[0, :, :8], prefix("sum", x[:, :8] * 2, 1, False))
    np.testing.assert_array_equal(y[1, :, :8], prefix("min", x[:, :8], 1, True))
    lanes = x.reshape(4, 32, 48)
    np.testing.assert_array_equal(y[2, :, 0], prefix("max", lanes[..., 0], 1, True).reshape(-1))
    np.testing.assert_array_equal(y[2, :, 1], prefix("min", lanes[..., 1], 1, False).reshape(-1))
    cuda(made)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
@pytest.mark.parametrize(("rows", "threads"), [(64, 128), (48, 32)])
def test_scans_compile(rows: int, threads: int, target: str) -> None:
    text = cuda(scans(rows, threads, target))
    assert ("bar_sync(1, 128)" in text) == (threads == 128)
    assert "scan_quad_sum_int" in text
    assert "scan_octet_min_int" in text
