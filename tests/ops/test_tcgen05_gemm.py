"""A persistent GEMM for sm_100a: TMA ring, one issuing warp, accumulators double-buffered in tensor
memory, an epilogue warpgroup. It is verified, simulated under every order and built; and the
mistakes that tensor memory invites are findings.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from cake.ir.program import Program
from cake.simulate.orders import ORDERS
from cake.simulate.run import simulate
from cake.verify import verify
from tests.ops.schedules import cuda, program

PARAMS = 'a: Tensor[bf16, "M", "K"], b: Tensor[bf16, "N", "K"], d: Tensor[f32, "M", "N"]'
DECLS = """
BN = 128
require(N % 8 == 0, K > 0)
tiles = persistent(cdiv(M, 128), cdiv(N, BN))
A = smem({dtype}, (128, {bk}), stages=3, swizzle=128)
B = smem({dtype}, (BN, {bk}), stages=3, swizzle=128)
T = tmem(f32, (128, BN), stages=2)
word = smem(u32, (1,))
out = role(warpgroups=1)
load_ab = role(warps=1)
math = role(warps=1)
ab = pipeline(A, B, producer=load_ab, consumer=math)
full = barrier(slots=2, arrivals=1)
empty = barrier(slots=2, arrivals=4)
"""
ROLES = """
with load_ab:
    cta_sync()
    for m, n in tiles:
        for k in range(cdiv(K, {bk})):
            with ab.fill() as s:
                tma_load(A[s], a[m * 128, k * {bk}])
                tma_load(B[s], b[n * BN, k * {bk}])
    cta_sync()
with math:
    tmem_alloc(T, word[0])
    cta_sync()
    stage = 0
    phase = 1
    for m, n in tiles:
        barrier_wait(empty, stage, phase)
        tcgen05_fence_after()
        for k in range(cdiv(K, {bk})):
            s = wait(ab)
            tcgen05_mma(T[stage], A[s], B[s].T, init=k == 0)
            tcgen05_commit(ab, s)
        tcgen05_commit(full, stage)
        stage = stage ^ 1
        phase = phase ^ cast(stage == 0, i32)
    cta_sync()
    tmem_free(T)
with out:
    cta_sync()
    stage = 0
    phase = 0
    for m, n in tiles:
        barrier_wait(full, stage, phase)
        tcgen05_fence_after()
        row = m * 128 + thread()
        for c in static_range(BN // 32):
            part = tcgen05_ld(T[stage], c * 32, 32)
            tcgen05_wait_ld(part)
            for j in static_range(4):
                column = n * BN + c * 32 + j * 8
                if row < M and column < N:
                    piece = registers(f32, 8)
                    for i in static_range(8):
                        piece[i] = part[j * 8 + i]
                    store(d[row, column], piece)
        tcgen05_fence_before()
        arrive(empty, stage)
        stage = stage ^ 1
        phase = phase ^ cast(stage == 0, i32)
    cta_sync()
"""


def gemm(dtype: str = "bf16", *changes: tuple[str, str], target: str = "sm_100a") -> Program:
    bk = 128 // {"bf16": 2, "f16": 2, "tf32": 4, "e4m3": 1}[dtype]
    roles, decls = ROLES.format(bk=bk), DECLS.format(dtype=dtype, bk=bk)
    for old, new in changes:
        assert old in roles + decls
        roles, decls = roles.replace(old, new, 1), decls.replace(old, new, 1)
    return program(roles, decls, params=PARAMS.replace("bf16", dtype), target=target)


def tensors(m: int, n: int, k: int, kind: Any) -> dict[str, Any]:
    rng = np.random.default_rng(5)
    return {
        "a": rng.integers(-3, 4, (m, k)).astype(kind),
        "b": rng.integers(-3, 4, (n, k)).astype(kind),
        "d": np.zeros((m, n), np.float32),
    }


KINDS = {
    "bf16": ml_dtypes.bfloat16,
    "f16": np.float16,
    "tf32": np.float32,
    "e4m3": ml_dtypes.float8_e4m3fn,
}


def check(made: Program, found: dict[str, Any], **options: Any) -> None:
    result = simulate(made, found, outputs=("d",), **options)
    assert result.ok, [d.message for d in result.findings]
    exact = found["a"].astype(np.float64) @ found["b"].astype(np.float64).T
    np.testing.assert_array_equal(found["d"], exact)


@pytest.mark.parametrize("order", ORDERS)
def test_products_under_every_order(order: str) -> None:
    check(gemm(), tensors(256, 256, 192, ml_dtypes.bfloat16), order=order, resident=1)


@pytest.mark.parametrize("dtype", KINDS)
def test_every_type_and_tails(dtype: str) -> None:
    check(gemm(dtype), tensors(200, 136, 160, KINDS[dtype]), resident=2)


def test_the_verifier_has_no_objection() -> None:
    verdict = verify(gemm())
    assert verdict.status == "accepted", [d.message for d in verdict.diagnostics]


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_it_builds(dtype: str, target: str) -> None:
    text = cuda(gemm(dtype, target=target))
    kind = {"bf16": "f16", "f16": "f16", "tf32": "tf32", "e4m3": "f8f6f4"}[dtype]
    assert f"tcgen05.mma.cta_group::1.kind::{kind}" in text


@pytest.mark.parametrize(
    ("change", "code", "said"),
    [
        (("tmem_free(T)", "fence()"), "CK521", "holds 256 columns"),
        (("tcgen05_commit(full, stage)", "fence()"), "CK505", "full"),
        (("init=k == 0", "init=False"), "CK501", "where nothing has been written"),
        (("tcgen05_wait_ld(part)", "fence()"), "CK506", "part is read while tcgen05 owns it"),
        (("barrier_wait(full, stage, phase)", "fence()"), "CK501", "nothing has been written"),
    ],
)
def test_mistakes_are_found(change: tuple[str, str], code: str, said: str) -> None:
    made = gemm("bf16", change)
    result = simulate(made, tensors(128, 128, 64, ml_dtypes.bfloat16))
    assert result.findings
    assert result.findings[0].code.startswith(code)
    assert said in result.findings[0].message


def test_a_tile_handed_back_too_early_is_overtaken() -> None:
    body = """
with math:
    tmem_alloc(T, word[0])
    cta_sync()
    for k in range(2):
        s = wait(ab)
        barrier_wait(empty, 0, k & 1 ^ 1)
        tcgen05_mma(T[0], A[s], B[s].T, init=True)
        tcgen05_commit(ab, s)
        tcgen05_commit(full, 0)
    cta_sync()
    tmem_free(T)
with load_ab:
    cta_sync()
    for k in range(2):
        with ab.fill() as s:
            tma_load(A[s], a[0, k * 64])
            tma_load(B[s], b[0, k * 64])
    cta_sync()
with out:
    cta_sync()
    for k in range(2):
        barrier_wait(full, 0, k & 1)
        part = tcgen05_ld(T[0], 0, 8)
        {first}
        {second}
        store(d[thread(), k * 8], part)
    cta_sync()
"""
    decls = (
        DECLS.format(dtype="bf16", bk=64)
        .replace("tiles = persistent", "count = cdiv")
        .replace("count = cdiv(cdiv(M, 128), cdiv(N, BN))", "")
    )
    lines = {"first": "tcgen05_wait_ld(part)", "second": "arrive(empty, 0)"}
    for early in (False, True):
        first, second = lines.values() if not early else reversed(lines.values())
        made = program(
            body.format(first=first, second=second), decls, params=PARAMS, target="sm_100a"
        )
        found = [
            simulate(made, tensors(128, 128, 128, ml_dtypes.bfloat16), order=o).findings
            for o in ORDERS
        ]
        codes = {f.code for findings in found for f in findings}
        assert codes == ({"CK598"} if early else set())
