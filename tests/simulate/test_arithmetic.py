"""Arithmetic of whole programs is that of the types: where other roundings would show."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.kernels import schedules
from tests.kernels.cases import Trial
from tests.simulate.programs import run

FLOATS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "e4m3": ml_dtypes.float8_e4m3fn,
    "e5m2": ml_dtypes.float8_e5m2,
}
BITS = {"bf16": 8, "f16": 11, "e4m3": 4, "e5m2": 3}
"""Bits of the significand, the hidden one included."""


@pytest.mark.parametrize("dtype", FLOATS)
def test_casts_round_ties_to_even(dtype: str) -> None:
    body = f"""
math = role(warps=1)
with math:
    r = registers(f32, 4)
    for i in range(4, unroll=True):
        r[i] = load(v[lane() * 4 + i])
    store(w[lane() * 4], cast(r, {dtype}))
"""
    step = 2.0 ** (1 - BITS[dtype])
    values = np.zeros(128, np.float32)
    values[:6] = [1 + step / 2, 1 + 3 * step / 2, 1 + step / 2 + 2**-20, -1 - step / 2, 0.75, 2.5]
    given = {"v": values, "w": np.zeros(128, FLOATS[dtype])}
    after = run(body, given, params=f"v: Tensor[f32, 128], w: Tensor[{dtype}, 128]")
    expected = [1, 1 + 2 * step, 1 + step, -1, 0.75, 2.5]
    np.testing.assert_array_equal(after["w"][:6].astype(np.float64), expected)


def test_products_and_sums_round_one_by_one_and_fma_once() -> None:
    body = """
math = role(warps=1)
with math:
    a = load(v[0])
    b = load(v[1])
    store(v[2], a * a + b)
    store(v[3], fma(a, a, b))
"""
    a, b = np.float32(1 + 2**-12), np.float32(-1)
    after = run(body, {"v": np.array([a, b, 0, 0], np.float32)}, params="v: Tensor[f32, 4]")
    assert after["v"][2] == a * a + b == np.float32(2**-11)
    assert after["v"][3] == np.float32(2**-11 + 2**-24)


def test_f32_sums_lose_what_f32_loses() -> None:
    body = """
math = role(warps=1)
with math:
    total = load(v[0])
    for i in range(100):
        total = total + 1.0
    store(v[0], total)
"""
    after = run(body, {"v": np.array([2**24], np.float32)}, params="v: Tensor[f32, 1]")
    assert after["v"][0] == 2**24


def test_i32_wraps() -> None:
    body = """
math = role(warps=1)
with math:
    a = load(c[0])
    store(c[1], a + a)
    store(c[2], a * 3 - 1)
"""
    c = np.array([2**30 + 7, 0, 0], np.int32)
    after = run(body, {"c": c}, params="c: Tensor[i32, 3]")
    assert list(after["c"][1:]) == [-(2**31) + 14, 3 * (2**30 + 7) - 1 - 2**32]


def by_instruction(a: Any, b: Any, k: int) -> Any:
    """a . b^T as the tensor core does it: each K of ``k`` exact, then a sum rounded to f32."""
    total = np.zeros((len(a), len(b)), np.float32)
    for i in range(0, a.shape[1], k):
        part = a[:, i : i + k].astype(np.float64) @ b[:, i : i + k].T.astype(np.float64)
        total = (total + part).astype(np.float32)
    return total


def test_a_gemm_is_the_sum_of_its_instructions_bit_by_bit() -> None:
    (file,) = (f for f in schedules("gemm", "sm_90a") if f.name == "sm_90a")
    trial = Trial(workload="gemm", file=file, shape={"M": 256, "N": 256, "K": 256})
    inputs = trial.inputs()
    outputs, findings = trial.simulate(inputs)
    assert not findings
    expected = by_instruction(inputs["a"], inputs["b"], 16).astype(ml_dtypes.bfloat16)
    assert outputs["d"].tobytes() == expected.tobytes()
