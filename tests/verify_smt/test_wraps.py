"""Arithmetic in 32 bits."""

from __future__ import annotations

import pytest

from .schedules import codes, judged, said

pytest.importorskip("z3")

TEXT = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "L"]):
    require({guard})
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = {index}
        if {condition}:
            store(y[i], 1.0)
"""


@pytest.mark.parametrize(
    "index", ["(n * 32 + lane()) * 4", "(n << 7) + lane() * 4", "n * 64 // 2 + lane()"]
)
def test_an_index_that_wraps_and_is_used_is_refuted(index: str) -> None:
    v = judged(TEXT.format(guard="L > 0", index=index, condition="i < L"))
    assert codes(v) == {"CK473"}, said(v)
    value = next(d for d in v.diagnostics if d.code == "CK473").facts["value"]
    assert isinstance(value, int)
    assert value < 0


@pytest.mark.parametrize(
    ("guard", "index"),
    [
        ("N <= 500000000", "(n * 32 + lane()) * 4"),
        ("N * 4 < 2147483000", "(n * 32 + lane()) * 4"),
        ("L > 0", "n * 32 + lane()"),
    ],
)
def test_an_index_that_fits_is_accepted(guard: str, index: str) -> None:
    v = judged(TEXT.format(guard=guard, index=index, condition="i < L"))
    assert not codes(v), said(v)


def test_a_value_that_wraps_where_nothing_follows_it_is_not_refuted() -> None:
    guarded = TEXT.format(
        guard="L > 0", index="(n * 32 + lane()) * 4", condition="n < 100 and i < L"
    )
    assert not codes(judged(guarded)), said(judged(guarded))


def test_64_bits_do_not_wrap() -> None:
    index = "cast(n * 32 + lane(), i64) * 4"
    v = judged(TEXT.format(guard="L > 0", index=index, condition="i < cast(L, i64)"))
    assert not any("fits into 32 bits" in u for u in v.uncovered), said(v)
    assert not codes(v), said(v)
