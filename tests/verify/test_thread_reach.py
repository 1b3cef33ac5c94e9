"""Indices of shared memory under conditions on the thread."""

from __future__ import annotations

import pytest

from cake.verify import verify

from .examples import found, programs

TEXT = """
@cake.schedule(target="sm_80")
def kernel(n: Tensor[i32, 1], x: Tensor[f32, "M", 64], y: Tensor[f32, "M", 64]):
    m = grid(M)
    L = smem(f32, (16,))
    r = role(warps=2)
    with r as w:
        t = w * 32 + lane()
        store(y[m, t], 0.0)
        {body}
"""
STORE = "store(L[{index}], 1.0)"


def under(condition: str, index: str = "t") -> str:
    return f"if {condition}:\n            " + STORE.format(index=index)


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        pytest.param(under("t < 16"), "inside", id="the first threads"),
        pytest.param(under("t <= 16"), "outside", id="one thread more"),
        pytest.param("store(L[t], 1.0, mask=t <= 16)", "outside", id="under a mask"),
        pytest.param(under("w == 1", "t - 32"), "outside", id="all of the second warp"),
        pytest.param(under("w == 1 and lane() < 16", "t - 32"), "inside", id="half of a warp"),
        pytest.param(under("t > 16", "t - 17"), "outside", id="an offset"),
        pytest.param("store(L[bitxor(w, 1)], 1.0)", "inside", id="the other warp"),
        pytest.param("store(L[bitxor(w, 16)], 1.0)", "open", id="another warp"),
        pytest.param(under("t < load(n[0])"), "open", id="a condition on data"),
        pytest.param(under("t < 16 or t == load(n[0])"), "open", id="an alternative"),
    ],
)
def test_an_index_under_a_condition_on_threads(body: str, expected: str) -> None:
    (program,) = programs(TEXT.format(body=body))
    v = verify(program, layers=("L0",))
    outside = "CK319" in {d.code for d in v.diagnostics}
    is_open = any("stays inside" in u for u in v.uncovered)
    assert ("outside" if outside else "open" if is_open else "inside") == expected, found(v)
