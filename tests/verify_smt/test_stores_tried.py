"""Verdicts about stores of different CTAs against trying all sizes, CTAs and threads."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from .schedules import codes, judged, said

pytest.importorskip("z3")

GENERATED = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "B", "N"], y: Tensor[f32, "L"]):
    require(B >= 1, N >= 1, {guard})
    b, n = grid(B, cdiv(N, {tile}))
    r = role(warps=1)
    with r:
        i = n * {tile} + lane() % {tile}
        if {condition}:
            j = {place}
            if j >= 0 and j < L:
                store(y[j], load(x[b, i]) + cast(b, f32))
"""

ROWS, COLUMNS = range(1, 9), range(1, 25)
"""What the guards admit lies in these."""


def _pieces(r: Random) -> dict[str, int | str]:
    tile = r.choice([4, 8, 32])
    places = [
        f"b * {r.choice([8, 10, 12, 16])} + i",
        "i * 8 + b",
        "(b * 16 + i) // 2",
        "i + b",
        "i * B + b",
        "b * N + i",
        f"b * 16 + n * {r.choice([4, 8, 16, 32])} + lane() % {tile}",
        "max(b * 16 + i - 1, 0)",
        "b * 16 + i % 8",
        "(7 - b) * 16 + i",
    ]
    return {
        "tile": tile,
        "guard": r.choice(["B <= 8, N <= 16", "N <= 12, B <= 6", "B == 1, N <= 24"]),
        "condition": r.choice(["i < N", "i < N and b < 3", "i < N and i % 2 == 0", "i < N - b"]),
        "place": r.choice(places),
    }


def _meet(pieces: dict[str, int | str]) -> bool:
    """Whether two CTAs store to one element at some sizes."""
    guard, condition, place = (
        compile(text.replace("lane()", "lane"), "piece", "eval")
        for text in (
            f"all(({pieces['guard']},))",
            str(pieces["condition"]),
            str(pieces["place"]),
        )
    )
    tile = int(pieces["tile"])
    for rows, columns in product(ROWS, COLUMNS):
        sizes: dict[str, Any] = {"all": all, "max": max, "B": rows, "N": columns}
        if not eval(guard, sizes):
            continue
        owner: dict[int, tuple[int, int]] = {}
        ctas = product(range(rows), range(-(-columns // tile)))
        for (b, n), lane in product(ctas, range(32)):
            at = {**sizes, "b": b, "n": n, "lane": lane, "i": n * tile + lane % tile}
            if eval(condition, at) and owner.setdefault(eval(place, at), (b, n)) != (b, n):
                return True
    return False


@pytest.mark.parametrize("seed", range(24))
def test_verdicts_agree_with_trying_all_ctas(seed: int) -> None:
    pieces = _pieces(Random(seed))
    v = judged(GENERATED.format(**pieces))
    assert bool(codes(v)) == _meet(pieces), f"{GENERATED.format(**pieces)}\n{said(v)}"
    assert codes(v) <= {"CK323", "CK474"}, said(v)
    assert not any("CTAs" in u for u in v.uncovered), said(v)
