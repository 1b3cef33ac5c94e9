"""``cp_async``: operands, zero fill, groups, which thread copies which chunk."""

from __future__ import annotations

from math import prod

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import BF16
from cake.ir.types import SmemView
from cake.ops.cp_async import chunk_index
from tests.ops.schedules import accepted, cuda, finding, message, program, run

BF = ml_dtypes.bfloat16
PARAMS = 'x: Tensor[bf16, "B", "M", "N"], z: Tensor[bf16, "R", "C"], w: Tensor[f32, 64]'
SMEM = "S = smem(bf16, (32, 64), stages=3, swizzle=128)\nQ = smem(f32, (3, 6))"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("cp_async(S[0], x[0, 0, 0], bytes=12)", "bytes must be one of 4, 8, 16"),
        ("cp_async(Q, w[0])", "2 axes, w only 1"),
        ("cp_async(Q[0], w[0])", "a row of the tile has 24 bytes"),
        ("cp_async(Q[0, 0:4], w[0])", "rows of Q are 24 bytes apart"),
        ("cp_async(S[0], x[0, 0, 4])", "the last coordinate of the place must be a multiple of 8"),
        ("cp_async(S[0].T, x[0, 0, 0])", "transposed"),
        ("cp_async(S[0][0, 0], x[0, 0, 0])", "a single element"),
        ("cp_async(S[0], w[0])", "the tile holds bf16, the tensor f32"),
        ("cp_async(S[0], x[0, 0, 0], zfill=1)", None),
        ("cp_async_wait(-1)", "in [0, 63], got -1"),
        ("cp_async_wait(M)", "known at compile time"),
    ],
)
def test_operands_are_checked(body: str, said: str | None) -> None:
    if said is None:
        accepted(body, SMEM, params=PARAMS)
    else:
        assert said in message(body, SMEM, params=PARAMS)


COPY = """
for k in range(4):
    cp_async(S[k % 3], x[k // 2, 16 + k, 8])
    cp_async_commit()
    cp_async_wait(0)
    unit_sync()
    for i in range(32):
        for j in range(2):
            store(z[k * 32 + i, j * 32 + lane()], load(S[k % 3][i, j * 32 + lane()]))
    unit_sync()
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_what_lies_outside_the_tensor_becomes_zero(order: str) -> None:
    x = np.random.default_rng(2).standard_normal((2, 40, 56)).astype(BF)
    z = np.full((128, 64), -1, BF)
    made = accepted(COPY, SMEM, params=PARAMS)
    run(made, {"x": x, "z": z, "w": np.zeros(64, np.float32)}, order)
    for k in range(4):
        want = np.zeros((32, 64), BF)
        part = x[k // 2, 16 + k :, 8:]
        want[: len(part), :48] = part[:32]
        np.testing.assert_array_equal(z[k * 32 : k * 32 + 32], want)


def test_clamped_rows_repeat_the_last_one() -> None:
    x = np.random.default_rng(4).standard_normal((2, 40, 56)).astype(BF)
    z = np.full((128, 64), -1, BF)
    made = accepted(COPY.replace(", 8])", ", 8], clamp=True)"), SMEM, params=PARAMS)
    run(made, {"x": x, "z": z, "w": np.zeros(64, np.float32)})
    for k in range(4):
        rows = np.minimum(16 + k + np.arange(32), 39)
        np.testing.assert_array_equal(z[k * 32 : k * 32 + 32, :48], x[k // 2, rows, 8:])
        assert (z[k * 32 : k * 32 + 32, 48:] == 0).all()
    assert "min(" in cuda(made)
    before = accepted("cp_async(S[0], x[0, 0 - 1, 8], clamp=True)", SMEM, params=PARAMS)
    assert "negative" in finding(before, {"x": x, "z": z, "w": np.zeros(64, np.float32)})


def test_without_zero_fill_leaving_the_tensor_is_a_finding() -> None:
    made = accepted("cp_async(S[0], x[0, 16, 8], zfill=False)", SMEM, params=PARAMS)
    tensors = {
        "x": np.zeros((1, 40, 64), BF),
        "z": np.zeros((1, 1), BF),
        "w": np.zeros(64, np.float32),
    }
    assert "accessed at" in finding(made, tensors)


def test_a_coordinate_inside_a_chunk_is_found_at_run_time() -> None:
    made = accepted("for i in range(2):\n    cp_async(S[0], x[0, 0, i * 4])", SMEM, params=PARAMS)
    tensors = {
        "x": np.zeros((1, 40, 64), BF),
        "z": np.zeros((1, 1), BF),
        "w": np.zeros(64, np.float32),
    }
    assert "multiple of 8" in finding(made, tensors)


def test_reading_before_the_wait_is_found() -> None:
    body = "cp_async(S[0], x[0, 0, 0])\ncp_async_commit()\nstore(z[0, 0], load(S[0][0, 0]))"
    tensors = {
        "x": np.zeros((1, 40, 64), BF),
        "z": np.zeros((1, 1), BF),
        "w": np.zeros(64, np.float32),
    }
    assert finding(accepted(body, SMEM, params=PARAMS), tensors)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120a"])
@pytest.mark.parametrize("size", [4, 8, 16])
def test_emitted_copies_compile(target: str, size: int) -> None:
    body = f"cp_async(S[0], x[0, 5, 8], bytes={size})\ncp_async(Q[0], w[6], zfill=False, bytes=8)\n"
    body += "cp_async_commit()\ncp_async_wait(1)\nstore(z[0, 0], load(S[0][0, 0]))"
    text = cuda(accepted(body, SMEM, params=PARAMS, target=target, role="warps=3"))
    assert f"cp.async.{'cg' if size == 16 else 'ca'}.shared.global" in text
    assert "cp_async_8(" in text


def test_sides_that_cannot_leave_the_tensor_are_not_checked() -> None:
    text = cuda(accepted("cp_async(Q[0, 0:2], w[8], bytes=8)", SMEM, params=PARAMS))
    assert "zfill" not in text


RING = """
X = smem(bf16, (32, 64), stages=2, swizzle=128)
load = role(warps=2)
math = role(warps=1)
p = pipeline(X, producer=load, consumer=math)
"""
ROLES = """
with load as u:
    for k in range(5):
        with p.fill() as s:
            cp_async(X[s][u * 16 : u * 16 + 16], x[0, k * 32 + u * 16, 0])
with math:
    for k in range(5):
        with p.use() as s:
{use}
"""
GENERIC = """
            for i in range(32):
                for j in range(2):
                    store(z[k * 32 + i, j * 32 + lane()], load(X[s][i, j * 32 + lane()]))
"""
ASYNC = """
            tma_store(z[k * 32, 0], X[s])
            tma_store_commit()
            tma_store_wait(0)
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize("use", [GENERIC, ASYNC])
def test_a_ring_filled_by_cp_async_hands_over_in_order(order: str, use: str) -> None:
    x = np.random.default_rng(3).standard_normal((1, 150, 64)).astype(BF)
    z = np.zeros((160, 64), BF)
    made = program(ROLES.format(use=use), RING, params=PARAMS)
    run(made, {"x": x, "z": z, "w": np.zeros(64, np.float32)}, order)
    np.testing.assert_array_equal(z[:150], x[0])
    assert (z[150:] == 0).all()
    text = cuda(made)
    assert ("cp.async.mbarrier.arrive.noinc" in text) == (use == GENERIC)
    assert ("cp.async.wait_all" in text) == (use == ASYNC)
    assert ("fence_proxy_async();" in text) == (use == ASYNC)


@pytest.mark.parametrize("shape", [(32, 64), (4, 8, 16), (64,), (3, 8)])
@pytest.mark.parametrize("per", [2, 8])
def test_chunks_are_numbered_row_major(shape: tuple[int, ...], per: int) -> None:
    index = chunk_index("chunk", SmemView(BF16, shape, 0), per)
    codes = [compile(i.replace("/", "//"), i, "eval") for i in index]
    for chunk in range(prod(shape) // per):
        found = [eval(code, {"chunk": chunk}) for code in codes]
        assert found == list(np.unravel_index(chunk * per, shape))


@pytest.mark.parametrize("shape", [(16, 128), (8, 192), (2, 4, 384), (3, 100), (320,)])
@pytest.mark.parametrize("per", [2, 4])
def test_rows_of_several_lines_are_copied_line_by_line(shape: tuple[int, ...], per: int) -> None:
    index = chunk_index("chunk", SmemView(BF16, shape, 0), per)
    codes = [compile(i.replace("/", "//"), i, "eval") for i in index]
    found = [
        [eval(code, {"chunk": chunk}) for code in codes] for chunk in range(prod(shape) // per)
    ]
    flat = np.ravel_multi_index(np.array(found).T, shape)
    assert sorted(flat) == list(range(0, prod(shape), per))
    if shape[-1] % 64 == 0:
        lines = flat.reshape(-1, 64 // per)
        assert (np.diff(lines, axis=1) == per).all()
        assert (lines[:, 0] % 64 == 0).all()


def test_a_tail_inside_a_chunk_is_counted_in_bytes() -> None:
    text = cuda(accepted("cp_async(S[0], x[0, M - 3, 8])", SMEM, params=PARAMS))
    assert "min((int)(N - (8 + " in text
    fixed = PARAMS.replace('"M", "N"', '"M", 120')
    assert "cp_async_or_zero_16" in cuda(
        accepted("cp_async(S[0], x[0, M - 3, 64])", SMEM, params=fixed)
    )
