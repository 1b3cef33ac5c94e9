"""Ring arithmetic: exact modulo a prime, so that wrong algebra is told from rounding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.kernels import schedules, simulate_schedule
from cake.simulate import ORDERS, residues, simulate
from tests.kernels.cases import Trial
from tests.ops import test_tcgen05_gemm
from tests.simulate.programs import run

P = 251
dyadic = st.integers(-(2**20), 2**20).map(lambda n: n / 64)

SUM = """
math = role(warps=4)
with math as u:
    if lane() == 0:
        reduce_add(v[0], load(v[4 + u]))
"""
"""Warps add in any order."""


def ring(body: str, values: dict[str, Any], **options: Any) -> dict[str, Any]:
    return run(body, values, arithmetic="ring", **options)


@given(dyadic, dyadic)
def test_sums_and_products_of_floats_are_those_of_their_residues(a: float, b: float) -> None:
    x, y = residues(a, P), residues(b, P)
    assert residues(a + b, P) == (x + y) % P
    assert residues(a * b, P) == x * y % P


def test_halves_have_residues_too() -> None:
    assert residues([0.5, -1.0, 3.0, 252.0], P).tolist() == [126, 250, 3, 1]
    tiny, huge = residues([2.0**-1000, 2.0**1000], P)
    assert tiny * huge % P == 1


@pytest.mark.parametrize("seed", range(3))
def test_atomics_give_one_sum_in_every_order(seed: int) -> None:
    values = np.zeros(128, np.float32)
    values[4:8] = [1e8, -1e8, 0.1, 0.3]
    expected = int(residues(values, P).sum()) % P
    for order in ORDERS:
        after = ring(
            SUM, {"v": values.copy()}, params="v: Tensor[f32, 128]", order=order, seed=seed
        )
        assert after["v"][0] == expected


def gemm(file: Any, shape: dict[str, int], order: str = "late") -> tuple[dict[str, Any], Any]:
    """Inputs and result of a GEMM in the ring."""
    trial = Trial(workload="gemm", file=file, shape=shape)
    inputs, outputs = trial.inputs(), trial.garbage()
    found = simulate_schedule(
        trial.programs(), trial.problem(), {**inputs, **outputs}, order=order, arithmetic="ring"
    )
    assert not found, [d.message for d in found]
    return inputs, outputs["d"].astype(np.int64)


FILES = {
    f.name: f
    for target in ("sm_80", "sm_90a", "sm_100a")
    for f in schedules("gemm", target)
    if f.written_for == target
}
SHAPE = {"M": 65, "N": 136, "K": 136}


@pytest.mark.parametrize("name", FILES)
def test_every_gemm_is_the_product_of_the_residues(name: str) -> None:
    """Whatever the tiles and the order of sums, and with inputs whose float sums round."""
    inputs, result = gemm(FILES[name], SHAPE)
    a, b = (residues(inputs[x], P) for x in "ab")
    np.testing.assert_array_equal(result, a @ b.T % P)


def test_a_slice_that_is_left_out_shows() -> None:
    """The last 8 of 136 products."""
    file = FILES["sm_90a"]
    broken = replace(file, text=file.text.replace("KT = cdiv(K, BK)", "KT = K // BK"))
    inputs, result = gemm(broken, SHAPE)
    a, b = (residues(inputs[x], P) for x in "ab")
    assert (result != a @ b.T % P).mean() > 0.9


def test_two_ways_to_assign_points_agree() -> None:
    """Distances in the ring are compared as whole numbers, by both alike."""
    found = []
    for target in ("sm_80", "sm_90a"):
        file = next(f for f in schedules("kmeans_assign", target) if f.name == target)
        shape = {"B": 1, "N": 65, "K": 36, "D": 40}
        trial = Trial(workload="kmeans_assign", file=file, shape=shape)
        outputs = trial.garbage()
        tensors = {**trial.inputs(), **outputs}
        assert not simulate_schedule(trial.programs(), trial.problem(), tensors, arithmetic="ring")
        found.append(outputs["ids"])
    np.testing.assert_array_equal(*found)


FUNCTIONS = """
math = role(warps=1)
with math:
    a = load(v[lane()])
    b = load(v[lane() + 32])
    store(w[0, lane()], a / b * b)
    store(w[1, lane()], exp2(a))
    store(w[2, lane()], exp2(b + a - b))
    store(w[3, lane()], rsqrt(a))
    store(w[4, lane()], exp2(select(lane() < 4, a, -inf)))
    store(w[5, lane()], cast(lane() * 60000001, f32))
    store(w[6, lane()], abs(-a))
    store(w[7, lane()], a * 0.5 + a * 0.5)
"""


def test_functions_depend_on_the_argument_alone() -> None:
    values = np.arange(1, 65, dtype=np.float32) * np.float32(0.3)
    tensors = {"v": values, "w": np.zeros((8, 32), np.float32)}
    w = ring(FUNCTIONS, tensors, params="v: Tensor[f32, 64], w: Tensor[f32, 8, 32]")["w"]
    a = tensors["v"][:32]
    np.testing.assert_array_equal(
        a, residues(np.arange(1, 33, dtype=np.float32) * np.float32(0.3), P)
    )
    np.testing.assert_array_equal(w[0], a)
    np.testing.assert_array_equal(w[1], w[2])
    assert (w[1] != w[3]).mean() > 0.9
    assert len(set(w[1].tolist())) > 20
    np.testing.assert_array_equal(w[4], np.where(np.arange(32) < 4, w[1], 0))
    np.testing.assert_array_equal(w[5], np.arange(32) * 60000001 % P)
    assert (w[6] != a).mean() > 0.9
    np.testing.assert_array_equal(w[7], a)


def test_narrow_types_have_a_smaller_prime() -> None:
    made = test_tcgen05_gemm.gemm("e4m3")
    tensors = test_tcgen05_gemm.tensors(130, 136, 160, ml_dtypes.float8_e4m3fn)
    a, b = (residues(tensors[x], 13) for x in "ab")
    result = simulate(made, tensors, outputs=("d",), arithmetic="ring")
    assert result.ok
    assert result.modulus == 13
    np.testing.assert_array_equal(tensors["d"], a @ b.T % 13)


def test_poison_is_still_found() -> None:
    found = simulate(
        test_tcgen05_gemm.gemm("bf16", ("init=k == 0", "init=False")),
        test_tcgen05_gemm.tensors(128, 128, 64, ml_dtypes.bfloat16),
        arithmetic="ring",
    )
    assert [d.code for d in found.findings] == ["CK501"]
