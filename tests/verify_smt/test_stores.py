"""Stores of different CTAs."""

from __future__ import annotations

import pytest

from cake.lang.elaborate import parse
from cake.verify.context import Context
from cake.verify.disjoint import unseparated

from .schedules import codes, judged, said

pytest.importorskip("z3")

STORE = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "B", "N"], y: Tensor[f32, "L"]):
    require({guard})
    b, n = grid(B, cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = n * 32 + lane()
        if i < N:
            j = {place}
            if j < L:
                store(y[j], load(x[b, i]))
"""

APART = {
    "rows of the size": ("B * N < 1000000", "b * N + i"),
    "columns": ("B * N < 1000000", "i * B + b"),
    "wider rows": ("N <= 100, B <= 1000", "b * 100 + i"),
    "backwards": ("B * N < 1000000", "(B - 1 - b) * N + (N - 1 - i)"),
    "tiles of sizes": ("N <= 1024, B <= 100", "b * 1024 + n * 32 + (31 - lane())"),
}
MEET = {
    "narrow rows": ("N >= 100, N <= 1000, B <= 100", "b * 64 + i"),
    "folded": ("B <= 100, N <= 1000", "(i + b * 3) // 2"),
    "sum": ("B <= 100, N <= 1000", "i + b"),
    "short tiles": ("N <= 1000, B <= 100", "b * 1024 + n * 16 + lane()"),
}


@pytest.mark.parametrize("name", APART)
def test_stores_at_different_places_are_accepted(name: str) -> None:
    guard, place = APART[name]
    v = judged(STORE.format(guard=guard, place=place))
    assert v.status == "accepted", said(v)


@pytest.mark.parametrize("name", MEET)
def test_stores_that_meet_are_refuted_by_two_ctas(name: str) -> None:
    guard, place = MEET[name]
    v = judged(STORE.format(guard=guard, place=place))
    assert codes(v) == {"CK474"}, said(v)
    (d,) = v.diagnostics
    assert "one at" in d.message
    assert "the other at" in d.message


def test_sums_may_meet() -> None:
    text = STORE.format(guard="B <= 100, N <= 1000", place="i + b")
    v = judged(text.replace("store(y[j], load(x[b, i]))", "reduce_add(y[j], load(x[b, i]))"))
    assert not codes(v), said(v)


MOVED_BACK = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], c: Tensor[f32, "M"], y: Tensor[f32, "N"]):
    require(N >= 32, M * 32 >= N + 32)
    n = grid(cdiv(N, 32))
    r = role(warps=1)
    with r:
        i = min(n * 32, N - 32) + lane()
        store(y[i], load(x[i]) * {factor})
"""


def test_a_last_tile_that_is_moved_back_is_not_refuted() -> None:
    v = judged(MOVED_BACK.format(factor="2.0"))
    assert not codes(v), said(v)


def test_a_last_tile_that_is_moved_back_and_stores_something_else_is_refuted() -> None:
    v = judged(MOVED_BACK.format(factor="load(c[n])"))
    assert codes(v) == {"CK474"}, said(v)


TILES = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", "N"]):
    tiles = persistent(cdiv(M, 8), cdiv(N, 32))
    r = role(warps=8)
    with r as u:
        for m, n in tiles:
            row = m * {stride} + u
            if row < M and n * 32 + lane() < N:
                store(y[row, n * 32 + lane()], load(x[{row}, n * 32 + lane()]))
"""


def test_persistent_tiles_are_told_apart() -> None:
    v = judged(TILES.format(stride=8, row="row"))
    assert v.status == "accepted", said(v)


def test_persistent_tiles_that_meet_are_refuted() -> None:
    v = judged(TILES.format(stride=4, row="m"))
    assert codes(v) == {"CK474"}, said(v)


BY_NUMBER = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    tiles = persistent(M)
    r = role(warps=1)
    with r:
        s = 0.0
        for m in tiles:
            s = s + load(x[m, lane()])
        p = {place}
        if p < M:
            store(y[p, lane()], s)
"""


def test_ctas_are_told_apart_by_their_number() -> None:
    v = judged(BY_NUMBER.format(place="block_index()"))
    assert not codes(v), said(v)
    assert not any("CTAs store" in u for u in v.uncovered), said(v)


def test_ctas_that_share_a_place_are_refuted() -> None:
    v = judged(BY_NUMBER.format(place="block_index() // 2"))
    assert codes(v) == {"CK474"}, said(v)


def test_that_two_ctas_are_apart_does_not_settle_it_for_all() -> None:
    v = judged(BY_NUMBER.format(place="block_index() % 4"))
    assert v.status == "incomplete", said(v)
    assert any("CTAs store" in u for u in v.uncovered), said(v)


AFTER = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    tiles = persistent(M)
    r = role(warps=1)
    with r:
        s = 0.0
        for m in tiles:
            s = s + load(x[m, lane()])
            store(y[m, lane()], s)
        store(y[block_index(), lane()], s, mask=block_index() < M)
"""


def test_a_store_in_the_tiles_and_one_behind_them_may_be_of_one_cta() -> None:
    v = judged(AFTER)
    assert v.status == "incomplete", said(v)
    assert any("CTAs store" in u for u in v.uncovered), said(v)


UNROLLED = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 16, 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])
        for i in static_range(16):
            store(y[{row}, i, lane()], v + 1.0)
"""


@pytest.mark.parametrize("row", ["m", "m // 2 * 2 + m % 2"])
def test_unrolled_stores_are_one_question(row: str) -> None:
    v = judged(UNROLLED.format(row=row))
    assert v.status == "accepted", said(v)
    (program,) = parse(UNROLLED.format(row=row), "example.py").programs
    assert len(list(unseparated(Context(program)))) == (0 if row == "m" else 1)


PAIR = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M"], y: Tensor[f32, "L"]):
    require(L >= 64 * M + 64, M <= 1000000)
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m])
        store(y[m * 64 + lane()], v)
        store(y[m * 64 + {offset} + lane()], v + 1.0)
"""


@pytest.mark.parametrize(("offset", "meets"), [(32, False), (33, True), (64, True)])
def test_different_stores_of_different_ctas_are_compared(offset: int, meets: bool) -> None:
    v = judged(PAIR.format(offset=offset))
    assert codes(v) == ({"CK474"} if meets else set()), said(v)
