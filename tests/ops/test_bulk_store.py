"""Bulk copies and reductions out of shared memory: operands, values, order, emission."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.ops.schedules import accepted, cuda, finding, message, run

PARAMS = 'x: Tensor[f32, "N"], h: Tensor[bf16, 4, 64], k: Tensor[i64, 16], e: Tensor[i8, 64]'
PARAMS += ", g: Tensor[f32, 4, 64]"
SMEM = "Q = smem(f32, (4, 64))\nH = smem(bf16, (64,))\nK = smem(i64, (16,))\nE = smem(i8, (64,))"
BODY = """
i = lane()
store(Q[1, i], cast(i, f32))
store(Q[1, i + 32], 1.0)
store(H[i], cast(0.5, bf16))
store(H[i + 32], cast(2.0, bf16))
if i < 16:
    store(K[i], cast(i, i64))
fence_async()
unit_sync()
bulk_store(x[8], Q[1, 0:64])
for n in range(3):
    bulk_reduce_add(h[n, 0], H)
    bulk_reduce_add(k[8], K[8:16])
tma_store_commit()
tma_store_wait(0)
"""


def tensors() -> dict[str, np.ndarray]:
    return {
        "x": np.full(80, -1, np.float32),
        "h": np.ones((4, 64), ml_dtypes.bfloat16),
        "k": np.full(16, 10, np.int64),
        "e": np.zeros(64, np.int8),
        "g": np.zeros((4, 64), np.float32),
    }


@pytest.mark.parametrize("order", ["early", "late", "random"])
def test_rows_are_stored_and_added(order: str) -> None:
    found = tensors()
    run(accepted(BODY, SMEM, params=PARAMS), found, order)
    np.testing.assert_array_equal(found["x"], [*[-1] * 8, *range(32), *[1] * 32, *[-1] * 8])
    row = [1.5] * 32 + [3.0] * 32
    np.testing.assert_array_equal(found["h"].astype(np.float32), [row] * 3 + [[1.0] * 64])
    np.testing.assert_array_equal(found["k"], [10] * 8 + [10 + 3 * i for i in range(8, 16)])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("bulk_store(g[0, 0], Q)", "one unswizzled row"),
        ("bulk_store(x[2], Q[0, 0:8])", "must be a multiple of 4, got 2"),
        ("bulk_store(x[0], Q[0, 0:6])", "a multiple of 16 bytes, got 24"),
        ("bulk_store(h[0, 0], Q[0, 0:64])", "the tile holds f32, the tensor bf16"),
        ("bulk_reduce_add(e[0], E)", "bulk reductions add f32, f16, bf16, i32, u32, i64, not i8"),
    ],
)
def test_operands_are_checked(body: str, said: str) -> None:
    assert said in message(body, SMEM, params=PARAMS)


@pytest.mark.parametrize(
    ("old", "new", "code"),
    [
        ("fence_async()", "n = 0", "CK504"),
        ("tma_store_wait(0)", "n = 0", "CK508"),
        ("x[8]", "x[20]", "CK503"),
    ],
)
def test_mistakes_are_found(old: str, new: str, code: str) -> None:
    made = accepted(BODY.replace(old, new), SMEM, params=PARAMS)
    assert finding(made, tensors()).startswith(code)


@pytest.mark.parametrize("target", ["sm_90a", "sm_120a"])
def test_it_builds(target: str) -> None:
    text = cuda(accepted(BODY, SMEM, params=PARAMS, target=target))
    for instruction in (
        "cp.async.bulk.global.shared::cta.bulk_group [%0]",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.noftz.bf16",
        "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u64",
    ):
        assert instruction in text


def test_older_targets_have_none() -> None:
    said = message("bulk_store(x[0], Q[0, 0:8])", SMEM, params=PARAMS, target="sm_80")
    assert "bulk_store does not exist on sm_80" in said
