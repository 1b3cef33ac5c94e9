"""tcgen05 and tensor memory: operands, descriptors, a product that assembles for sm_100a."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from cake.ir.dtypes import BF16, F16
from cake.lang.elaborate import parse
from cake.ops.tcgen05_mma import instruction_descriptor
from tests.ops.schedules import cuda, message, program, run, source

DECLS = """
A = smem(bf16, (128, 64), stages=3, swizzle=128)
B = smem(bf16, (128, 64), stages=3, swizzle=128)
T = tmem(f32, (128, 128), stages=2)
word = smem(u32, (1,))
out = role(warpgroups=1)
load = role(warps=1)
math = role(warps=1)
ab = pipeline(A, B, producer=load, consumer=math)
done = barrier(slots=2, arrivals=1)
"""
ROLES = """
with load:
    cta_sync()
    for k in range(8):
        with ab.fill() as s:
            tma_load(A[s], a[0, k * 64])
            tma_load(B[s], b[0, k * 64])
    cta_sync()
with math:
    tmem_alloc(T, word[0])
    cta_sync()
    for k in range(8):
        s = wait(ab)
        tcgen05_fence_after()
        tcgen05_mma(T[0], A[s], B[s].T, init=k == 0)
        tcgen05_commit(ab, s)
    tcgen05_commit(done, 0)
    cta_sync()
    tmem_free(T)
with out:
    cta_sync()
    barrier_wait(done, 0, 0)
    tcgen05_fence_after()
    for c in static_range(4):
        r = tcgen05_ld(T[0], c * 32, 32)
        tcgen05_wait_ld(r)
        store(d[thread(), c * 32], r)
    tcgen05_fence_before()
    cta_sync()
"""
PARAMS = 'a: Tensor[bf16, "M", "K"], b: Tensor[bf16, "N", "K"], d: Tensor[f32, "M", "N"]'


@pytest.mark.parametrize("target", ["sm_100a", "sm_103a"])
def test_a_product_assembles(target: str) -> None:
    text = cuda(program(ROLES, DECLS, params=PARAMS, target=target))
    for op in (
        "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32",
        "tcgen05.relinquish_alloc_permit",
        "tcgen05.mma.cta_group::1.kind::f16",
        "tcgen05.commit.cta_group::1.mbarrier::arrive::one",
        "tcgen05.ld.sync.aligned.32x32b.x32.b32",
        "tcgen05.wait::ld.sync.aligned",
        "tcgen05.dealloc.cta_group::1.sync.aligned.b32",
    ):
        assert op in text
    assert text.count("tcgen05_mma_f16(") == 1 + 4
    # Start address 0, LBO 16, SBO 1024 bytes, version 1, 128-byte swizzle.
    assert "0x4000404000010000ull" in text


def test_the_instruction_descriptor_follows_the_manual() -> None:
    assert instruction_descriptor(BF16, BF16, 128, 256) == 0x08400490
    assert instruction_descriptor(F16, F16, 128, 64) == 0x08100010
    assert instruction_descriptor(BF16, BF16, 256, 256) == 0x10400490


@pytest.mark.parametrize(
    ("role", "body", "said"),
    [
        ("math", "tmem_alloc(A, word[0])", "tiles must be declared with tmem"),
        ("math", "tmem_alloc(T, A[0][0, 0])", "one u32 of shared memory"),
        ("math", "tmem_alloc(W, word[0])", "takes 96 columns"),
        ("math", "tmem_alloc(H, word[0])", "must have 128 lanes"),
        ("math", "tcgen05_mma(A[0], A[0], B[0].T)", "a tile of tensor memory"),
        ("math", "tcgen05_mma(W[0], A[0], B[0].T)", "the accumulator is tmem(f32, 128x96)"),
        ("math", "tcgen05_mma(T[0], A[0], B[0])", "must be K-major"),
        ("math", "tcgen05_commit(T, 0)", "a pipeline or an mbarrier"),
        ("math", "tcgen05_commit(ab, 0)", "a slot of ab"),
        ("out", "r = tcgen05_ld(T[0], 100, 32)", "leave the 128 of T"),
        ("out", "r = tcgen05_ld(T[0], 0, 24)", "a power of two"),
        ("out", "tcgen05_wait_ld(1.0)", "the variable that holds a tcgen05_ld"),
        ("out", "tcgen05_mma(T[0], A[0], B[0].T)", "cannot run in a warpgroup"),
        ("math", "r = tcgen05_ld(T[0], 0, 32)", "cannot run in a warp"),
    ],
)
def test_operands_are_checked(role: str, body: str, said: str) -> None:
    more = "W = tmem(f32, (128, 96), stages=1)\nH = tmem(f32, (64, 64), stages=1)\n"
    text = source(f"with {role}:\n    {body}", DECLS + more, params=PARAMS, target="sm_100a")
    errors = [d.message for d in parse(text).diagnostics if d.severity == "error"]
    assert any(said in e for e in errors), errors


def test_other_targets_have_no_tensor_memory() -> None:
    assert "tcgen05_fence_after does not exist on sm_90a" in message("tcgen05_fence_after()")


def test_use_without_allocation_stops_emission() -> None:
    roles = ROLES.replace("tmem_alloc(T, word[0])", "tcgen05_fence_after()")
    with pytest.raises(ValueError, match="no tmem_alloc"):
        cuda(program(roles, DECLS, params=PARAMS, target="sm_100a"))


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_the_simulator_computes_the_product(order: str) -> None:
    made = program(ROLES, DECLS, params=PARAMS, target="sm_100a")
    rng = np.random.default_rng(1)
    a, b = (rng.integers(-3, 4, (128, 512)).astype(ml_dtypes.bfloat16) for _ in range(2))
    found = {"a": a, "b": b, "d": np.zeros((128, 128), np.float32)}
    run(made, found, order)
    np.testing.assert_array_equal(found["d"], a.astype(np.float32) @ b.astype(np.float32).T)
