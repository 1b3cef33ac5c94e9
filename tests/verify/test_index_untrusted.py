"""Indices from tensors: what counts as a comparison on them."""

from __future__ import annotations

import pytest

from .examples import found, verdict

TEXT = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "N"], x: Tensor[f32, "K", 32], y: Tensor[f32, "N", 32]):
    require(K > 0)
    S = smem(f32, (8, 32))
    n = grid(N)
    r = role(warps=1)
    with r:
        k = load(ids[n])
        {body}
"""
STORE = "store(y[n, lane()], load(x[k, lane()]))"


@pytest.mark.parametrize(
    ("body", "untrusted"),
    [
        pytest.param(STORE, True, id="as it is"),
        pytest.param("store(y[n, lane()], load(x[k * 2 + 1, lane()]))", True, id="calculated"),
        pytest.param(
            "j = k + 1\n        store(y[n, lane()], load(x[j, lane()]))", True, id="named"
        ),
        pytest.param("store(S[k, lane()], 1.0)", True, id="into shared memory"),
        pytest.param(f"if k >= 0 and k < K:\n            {STORE}", False, id="under a condition"),
        pytest.param(
            "store(y[n, lane()], load(x[k, lane()], mask=k < K, fill=0.0))", False, id="masked"
        ),
        pytest.param("store(y[n, lane()], load(x[k % 8, lane()]))", False, id="a remainder"),
        pytest.param("store(y[n, lane()], load(x[min(k, K - 1), lane()]))", False, id="limited"),
        pytest.param(f"if N > 4:\n            {STORE}", True, id="another condition"),
    ],
)
def test_an_index_from_a_tensor(body: str, untrusted: bool) -> None:
    v = verdict(TEXT.format(body=body))
    assert ("CK337" in {d.code for d in v.diagnostics}) is untrusted, found(v)
