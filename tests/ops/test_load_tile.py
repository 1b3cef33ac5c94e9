"""``load_tile``: operands, values at the tensor's edges, from shared memory, emission."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from tests.ops.schedules import accepted, cuda, finding, message, run

BF = ml_dtypes.bfloat16
PARAMS = 'x: Tensor[f32, 2, "M", "N"], h: Tensor[bf16, "M", "N"], k: Tensor[i8, 64, 64], '
PARAMS += 'y: Tensor[f32, "M", "N"], z: Tensor[f32, 64, 64]'
SMEM = "S = smem(f32, (64, 64), swizzle=128)\nO = smem(f32, (64, 63))\nH = smem(bf16, (64, 64))"


def tensors(rows: int, columns: int) -> dict[str, Any]:
    rng = np.random.default_rng(8)
    return {
        "x": rng.standard_normal((2, rows, columns)).astype(np.float32),
        "h": rng.integers(-9, 10, (rows, columns)).astype(BF),
        "k": np.zeros((64, 64), np.int8),
        "y": np.zeros((rows, columns), np.float32),
        "z": np.zeros((64, 64), np.float32),
    }


@pytest.mark.parametrize(
    ("role", "rows"), [("warps=1", 32), ("warpgroups=1", 64), ("warpgroups=1", 128)]
)
@pytest.mark.parametrize("columns", [41, 42])
def test_tiles_of_tensors_read_zero_outside(role: str, rows: int, columns: int) -> None:
    body = f"""
a = load_tile(x[1, 3, 5], ({rows}, 40))
b = load_tile(h[3, 5], ({rows}, 40))
store(y[0, 0], a + cast(b, f32))
"""
    found = tensors(rows + 1, columns)
    made = accepted(body, params=PARAMS, role=role)
    run(made, found)
    want = np.zeros((rows + 1, columns), np.float32)
    part = found["x"][1, 3:, 5:] + found["h"][3:, 5:].astype(np.float32)
    want[: part.shape[0], : part.shape[1]] = part
    np.testing.assert_array_equal(found["y"], want)
    text = cuda(made)
    assert "load_pair_f32" in text
    assert "ld.global.v2.f32" in text


@pytest.mark.parametrize(
    ("put", "take", "transposed"),
    [("S", "S", False), ("S", "S.T", True), ("O", "O[0:64, 0:56]", False)],
)
def test_tiles_of_shared_memory(put: str, take: str, transposed: bool) -> None:
    width = 63 if put == "O" else 64
    body = f"""
t = thread()
for i in range(64):
    if t < {width}:
        store({put}[i, t], load(x[0, i, t]))
unit_sync()
store(z[0, 0], load_tile({take}))
"""
    found = tensors(64, 64)
    made = accepted(body, SMEM, params=PARAMS, role="warpgroups=1")
    run(made, found)
    want = found["x"][0].T if transposed else found["x"][0]
    columns = 56 if put == "O" else 64
    np.testing.assert_array_equal(found["z"][:, :columns], want[:, :columns])
    assert ("ld.shared.v2.f32" in cuda(made)) == (put == "S" and not transposed)


def test_16_bit_tiles_of_shared_memory() -> None:
    body = """
t = thread()
for i in range(64):
    if t < 64:
        store(H[i, t], load(h[i, t]))
unit_sync()
store(z[0, 0], cast(load_tile(H), f32) + cast(load_tile(H.T), f32))
"""
    found = tensors(64, 64)
    made = accepted(body, SMEM, params=PARAMS, role="warpgroups=1")
    run(made, found)
    h = found["h"].astype(np.float32)
    np.testing.assert_array_equal(found["z"], h + h.T)
    assert "put_pair_b16" in cuda(made)


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("a = load_tile(x[0, 0, 0])", "says how much of a tensor is loaded, got None"),
        ("a = load_tile(x[0, 0, 0], (64, 12))", "columns of a fragment must be a positive mul"),
        ("a = load_tile(x[0, 0, 0], (32, 16))", "rows of the unit's fragment must be a positive"),
        ("a = load_tile(S, (64, 64))", "a view has its own shape"),
        ("a = load_tile(k[0, 0], (64, 16))", "the source holds i8"),
        ("a = load_tile(x[0, thread(), 0], (64, 16))", "the same in all threads"),
        ("a = load_tile(S[0:64, 1:17])", "must be a multiple of 2, got 1"),
    ],
)
def test_operands_are_checked(body: str, said: str) -> None:
    assert said in message(body, SMEM, params=PARAMS, role="warpgroups=1")


def test_clip_false_makes_a_load_outside_a_finding() -> None:
    body = "a = load_tile(h[8, 0], (64, 16), clip=False)"
    assert "accessed at" in finding(
        accepted(body, params=PARAMS, role="warpgroups=1"), tensors(64, 64)
    )
