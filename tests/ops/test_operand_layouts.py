"""Operands of 8- and 32-bit elements: what ldmatrix brings, a_operand, products of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cake.ir.dtypes import BF16, E4M3, F16, F32, I8, TF32, DType, numpy_dtype
from cake.ir.fragments import coordinates
from cake.ir.types import Fragment, Scalar
from cake.ops.values import from_matrix, to_matrix
from tests.ops.fakes import FakeTyping, FakeUnit, Refused, make, var
from tests.ops.schedules import accepted, cuda, message, run

WARP = FakeTyping(unit_threads=32)


@pytest.mark.parametrize("dtype", [I8, TF32])
@pytest.mark.parametrize("warps", [1, 4])
def test_a_lane_holds_four_bytes_of_a_row(dtype: DType, warps: int) -> None:
    per, wide = 4 // dtype.bytes, 16 // dtype.bytes
    t = Fragment(dtype, (32 * warps, 4 * wide), "a_ldmatrix", warps)
    rows, cols = coordinates(t)
    assert sorted(zip(rows.reshape(-1), cols.reshape(-1), strict=True)) == sorted(
        (r, c) for r in range(t.shape[0]) for c in range(t.shape[1])
    )
    words = cols.reshape(-1, t.registers // per, per)
    assert (words[..., 0] % per == 0).all()
    assert (np.diff(words, axis=-1) == 1).all()
    lane = np.arange(32 * warps)[:, None] % 32
    assert (cols % wide // per == lane % 4).all()
    assert (rows % 8 == lane // 4).all()


def test_16_bit_operands_need_no_layout_of_their_own() -> None:
    for own, like in (("a_ldmatrix", "acc"), ("b_ldmatrix", "b")):
        a, b = (Fragment(F16, (32, 32), layout, 1) for layout in (own, like))  # type: ignore[arg-type]
        for x, y in zip(coordinates(a), coordinates(b), strict=True):
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("dtype", [E4M3, I8, TF32])
def test_a_operand_keeps_the_matrix(dtype: DType) -> None:
    source = Fragment(dtype, (32, 64), "acc", 1)
    call = make("a_operand", var("x", source), typing=WARP)
    assert call.type == Fragment(dtype, (32, 64), "a_ldmatrix", 1)
    matrix = np.random.default_rng(1).integers(-8, 9, (32, 64)).astype(numpy_dtype(dtype))
    got = FakeUnit(threads=32, values={"x": from_matrix(source, matrix)}).run(call)
    np.testing.assert_array_equal(to_matrix(call.type, got), matrix)


@pytest.mark.parametrize(
    ("op", "operands", "said"),
    [
        ("a_operand", (var("x", Fragment(BF16, (16, 16), "acc", 1)),), "an A operand as it is"),
        ("a_operand", (var("x", Fragment(I8, (16, 48), "acc", 1)),), "a multiple of 32 for i8"),
        ("a_operand", (var("x", Fragment(I8, (32, 32), "b", 1)),), "an acc fragment of e4m3"),
        ("cast", (var("x", Fragment(F32, (16, 32), "a_ldmatrix", 1)), E4M3), "is not that of e4m3"),
        ("cast", (var("x", Scalar(I8)), E4M3), "i8 does not convert"),
        ("fragment", (F16, (16, 16), None, "a_ldmatrix"), "ldmatrix brings it as acc or b"),
        (
            "fragment",
            (I8, (16, 16), None, "a_ldmatrix"),
            "columns of a fragment must be a pos.* 32",
        ),
        ("fragment", (TF32, (12, 8), None, "b_ldmatrix"), "rows of a warp's fragment must be"),
        (
            "mma",
            (
                var("d", Fragment(F32, (16, 8), "acc", 1)),
                var("a", Fragment(TF32, (16, 8), "acc", 1)),
                var("b", Fragment(TF32, (8, 8), "b_ldmatrix", 1)),
            ),
            "do not go together",
        ),
    ],
)
def test_wrong_operands_are_refused(op: str, operands: tuple[Any, ...], said: str) -> None:
    with pytest.raises(Refused, match=said):
        make(op, *operands, typing=WARP)


def test_a_cast_between_32_bit_types_keeps_the_layout() -> None:
    x = var("x", Fragment(F32, (16, 32), "a_ldmatrix", 1))
    assert make("cast", x, TF32, typing=WARP).type == Fragment(TF32, (16, 32), "a_ldmatrix", 1)


# -- whole programs --------------------------------------------------------------------------------

DECLS = """
A = smem({dtype}, (64, {k}), swizzle={w})
W = smem({dtype}, (24, {k}), swizzle={w})
"""
FILL = """
t = thread()
for i in range(t, 64 * {k}, {threads}):
    store(A[i // {k}, i % {k}], {cast}load(x[i // {k}, i % {k}]){close})
for i in range(t, 24 * {k}, {threads}):
    store(W[i // {k}, i % {k}], {cast}load(x[64 + i // {k}, i % {k}]){close})
{sync}
"""
MMA = """
acc = fragment({acc}, (64, 24), fill={one})
mma(acc, ldmatrix(A), ldmatrix(W.T, operand="b"))
again = fragment({acc}, (64, 24), fill={one})
mma(again, a_operand({tile}), ldmatrix(W.T, operand="b"))
store(y[0, 0], cast(acc, f32))
store(y[64, 0], cast(again, f32))
"""
WGMMA = """
acc = fragment({acc}, (64, 24), fill={one})
wgmma(acc, ldmatrix(A), W.T)
wgmma_wait(0)
store(y[0, 0], cast(acc, f32))
"""
TYPES = {"tf32": (32, "sm_80"), "i8": (64, "sm_80"), "u8": (64, "sm_80"), "e4m3": (64, "sm_89")}


def product(dtype: str, target: str, threads: int = 32) -> Any:
    k = TYPES[dtype][0]
    acc = "i32" if dtype in ("i8", "u8") else "f32"
    text = FILL + (MMA if threads == 32 else WGMMA)
    wide = f"load_tile(x[0, 0], (64, {k}))"
    body = text.format(
        k=k,
        threads=threads,
        acc=acc,
        one=1 if acc == "i32" else 1.0,
        cast="cast(",
        close=f", {dtype})",
        sync="unit_sync()" if threads == 32 else "fence_async()\nunit_sync()",
        tile=f"cast({wide}, {dtype})",
    )
    if acc == "f32":
        body = body.replace("cast(acc, f32)", "acc").replace("cast(again, f32)", "again")
    return accepted(
        body,
        DECLS.format(dtype=dtype, k=k, w=128 if dtype == "tf32" else 64),
        params=f"x: Tensor[f32, 88, {k}], y: Tensor[f32, 128, 24]",
        role="warps=1" if threads == 32 else "warpgroups=1",
        target=target,
    )


def arrays(dtype: str) -> dict[str, Any]:
    low = 0 if dtype == "u8" else -4
    x = np.random.default_rng(4).integers(low, 5, (88, TYPES[dtype][0])).astype(np.float32)
    return {"x": x, "y": np.zeros((128, 24), np.float32)}


@pytest.mark.parametrize("dtype", TYPES)
def test_products_from_shared_memory_and_from_registers(dtype: str) -> None:
    found = arrays(dtype)
    made = product(dtype, TYPES[dtype][1])
    run(made, found)
    exact = 1 + found["x"][:64] @ found["x"][64:].T
    np.testing.assert_array_equal(found["y"], np.concatenate([exact, exact]))
    text = cuda(made)
    assert "ldmatrix.sync.aligned.m8n8.x4.shared.b16" in text
    assert "__shfl_sync" in text


@pytest.mark.parametrize("dtype", TYPES)
def test_wgmma_takes_every_type_from_registers(dtype: str) -> None:
    found = arrays(dtype)
    made = product(dtype, "sm_90a", threads=128)
    run(made, found)
    np.testing.assert_array_equal(found["y"][:64], 1 + found["x"][:64] @ found["x"][64:].T)
    assert "_rs(" in cuda(made)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a = ldmatrix(A.T)", "A of i8 must be stored as (M, K)"),
        ("a = ldmatrix(W, operand='b')", "B of i8 must be stored as (N, K) and used as W[s].T"),
        ("a = ldmatrix(A[0:64, 0:16])", "a multiple of 16 rows and of 32 columns"),
    ],
)
def test_8_bit_tiles_cannot_be_transposed(body: str, said: str) -> None:
    assert said in message(body, DECLS.format(dtype="i8", k=64, w=64))
