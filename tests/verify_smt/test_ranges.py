"""Accesses at the edge of tensors and buffers: proved, refuted by a counterexample, or open."""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Any

import pytest

from cake.diag import apply_edits

from .schedules import codes, judged, said

pytest.importorskip("z3")

TAIL = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    n = grid(cdiv(N, 128))
    r = role(warps=4)
    with r as u:
        i = n * 128 + u * 32 + lane()
        {body}
"""

HELD = {
    "strict comparison": "store(y[i], 1.0, mask=not (i >= N))",
    "either way": "store(y[i], 1.0, mask=(i < N and u == 0) or (i < N - 1 and u > 0))",
    "selection": "store(y[select(i < N, i, 0)], 1.0, mask=N > 0)",
    "remainder of a size": "store(y[i % N], load(x[i % N]) + cast(i, f32) * 0.0, mask=i < N)",
    "smaller of two": "v = load(x[min(i, N - 1)])\n        store(y[i], v, mask=i < N)",
    "low bits": "v = load(x[i & 15], mask=N >= 16)\n        store(y[i], v, mask=i < N)",
    "name of the condition": "ok = i < N\n        if ok:\n            store(y[i], load(x[i]))",
}

LEFT = {
    "at most": "store(y[i], load(x[i], mask=i < N), mask=i <= N)",
    "wrong branch": "if i < N:\n            pass\n        else:\n            store(y[i], 1.0)",
    "one behind": "store(y[i], load(x[i + 1], mask=i < N), mask=i < N)",
    "one before": "store(y[i], load(x[i - 1], mask=i < N), mask=i < N)",
    "other size": "store(y[i], 1.0, mask=i < cdiv(N, 128) * 128)",
    "either": "store(y[i], 1.0, mask=i < N or u == 0)",
    "selection": "store(y[select(i < N, i, N)], 1.0, mask=N > 5)",
    "too many low bits": "store(y[i], load(x[i & 31], mask=N >= 16), mask=i < N)",
}


@pytest.mark.parametrize("name", HELD)
def test_a_mask_that_holds_is_accepted(name: str) -> None:
    v = judged(TAIL.format(body=HELD[name]))
    assert not codes(v), said(v)
    assert not any("stays inside" in u for u in v.uncovered), said(v)


@pytest.mark.parametrize("name", LEFT)
def test_a_mask_that_does_not_hold_is_refuted_by_sizes(name: str) -> None:
    v = judged(TAIL.format(body=LEFT[name]))
    assert codes(v) == {"CK470"}, said(v)
    d = next(d for d in v.diagnostics if d.code == "CK470")
    first, last, size = (int(str(d.facts[key])) for key in ("first", "last", "size"))
    assert first < 0 or last >= size
    assert size == d.facts["N"]


def test_the_counterexample_is_small() -> None:
    (d,) = judged(TAIL.format(body=LEFT["at most"])).diagnostics
    assert int(str(d.facts["N"])) < 64


WIDE = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", "N"]):
    require(N % {unit} == 0)
    m, n = grid(M, cdiv(N, 128))
    r = role(warps=1)
    with r:
        i = n * 128 + lane() * 4
        store(y[m, i], load(x[m, i], width=4, mask=i < N), mask=i < N)
"""


@pytest.mark.parametrize(("unit", "inside"), [(4, True), (8, True), (2, False), (1, False)])
def test_all_elements_of_a_vector_count(unit: int, inside: bool) -> None:
    v = judged(WIDE.format(unit=unit))
    assert codes(v) == (set() if inside else {"CK470"}), said(v)


COLUMNS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "D"], y: Tensor[f32, "M", "D"]):
    require({guard})
    m = grid(M)
    X = smem(f32, (8, 16))
    r = role(warps=1)
    with r:
        for t in range(cdiv(D, 16)):
            store(X[t, lane() // 2], 1.0)
            unit_sync()
            store(y[m, t * 16], load(x[m, t * 16]) + load(X[t, 15 - lane() // 2]))
            unit_sync()
"""


@pytest.mark.parametrize(
    ("guard", "inside"), [("D <= 128", True), ("D <= 129", False), ("cdiv(D, 32) <= 4", True)]
)
def test_guards_keep_buffers(guard: str, inside: bool) -> None:
    v = judged(COLUMNS.format(guard=guard))
    assert codes(v) == (set() if inside else {"CK472"}), said(v)
    assert not any("stays inside" in u for u in v.uncovered), said(v)


DATA = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "N"], x: Tensor[f32, "K"], y: Tensor[f32, "N"]):
    n = grid(N)
    r = role(warps=1)
    with r:
        k = load(ids[n])
        v = load(x[k], mask={mask})
        store(y[n], v, mask=lane() == 0)
"""


def test_an_index_from_memory_is_neither_accepted_nor_refuted() -> None:
    v = judged(DATA.format(mask="k < K"))
    assert v.status == "incomplete", said(v)
    assert any("x in line 8 stays inside" in u for u in v.uncovered), said(v)


def test_an_index_from_memory_may_be_kept_inside() -> None:
    v = judged(DATA.format(mask="k >= 0 and k < K"))
    assert v.status == "accepted", said(v)


def test_a_condition_from_memory_does_not_confirm() -> None:
    v = judged(TAIL.format(body="if load(x[0], mask=N > 0) > 0.0:\n            store(y[i], 1.0)"))
    assert v.status == "incomplete", said(v)


def test_what_traps_before_is_not_refuted() -> None:
    v = judged(TAIL.format(body="trap(i >= N)\n        store(y[i], 1.0, mask=i <= N)"))
    assert v.status == "incomplete", said(v)


COUNTER = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, "N", 32]):
    r = role(warps=1)
    with r:
        i = 0
        while i < {limit}:
            store(y[i, lane()], 1.0)
            i = i + 3
"""


def test_rounds_of_a_while_are_executed() -> None:
    v = judged(COUNTER.format(limit="N + 1"))
    assert codes(v) <= {"CK470"}, said(v)
    assert v.status != "accepted", said(v)


GENERATED = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, "N"], z: Tensor[f32, "M"]):
    require(N >= 1, M >= 1, N % {div} == 0)
    n = grid(cdiv(N, {tile}))
    r = role(warps=1)
    with r as u:
        for k in range({start}, {stop}):
            i = {index}
            if {condition}:
                store(y[i], 1.0)
"""

LIMIT = 24


def _pieces(r: Random) -> dict[str, int | str]:
    tile = r.choice([4, 8, 32])
    return {
        "div": r.choice([1, 1, 2]),
        "tile": tile,
        "start": r.choice(["0", "n", "1"]),
        "stop": r.choice(["2", "M", "min(M, 3)", "n + 2"]),
        "index": r.choice(
            [
                f"n * {tile} + lane() % {tile} + k",
                f"min(n * {tile} + k, N - 1)",
                f"max(n * {tile} + lane() // 4 - k, 0)",
                f"(n * {tile} + k) // 2 + lane() // 16",
                f"select(k == 1, N - 1 - n, n * {tile})",
            ]
        ),
        "condition": r.choice(
            ["i < N", "i <= N", "i + k < N", "i < N - k", "i < N and k < M", "lane() < 40", "N > 3"]
        ),
    }


def _leaves(pieces: dict[str, int | str]) -> bool:
    """Whether some thread at some sizes up to LIMIT stores outside: every one is tried."""
    words = {"min": min, "max": max, "select": lambda c, a, b: a if c else b}
    index, cond, start, stop = (
        compile(str(pieces[key]).replace("lane()", "lane"), key, "eval")
        for key in ("index", "condition", "start", "stop")
    )
    tile, div = int(str(pieces["tile"])), int(str(pieces["div"]))
    for n_size, m_size in product(range(1, LIMIT), repeat=2):
        if n_size % div:
            continue
        for n in range(-(-n_size // tile)):
            at: dict[str, Any] = {**words, "N": n_size, "M": m_size, "n": n}
            for k, lane in product(range(eval(start, at), eval(stop, at)), range(32)):
                here = {**at, "k": k, "lane": lane}
                here["i"] = eval(index, here)
                if eval(cond, here) and not 0 <= here["i"] < n_size:
                    return True
    return False


@pytest.mark.parametrize("seed", range(40))
def test_verdicts_agree_with_trying_all_sizes(seed: int) -> None:
    pieces = _pieces(Random(seed))
    v = judged(GENERATED.format(**pieces))
    found = codes(v) & {"CK470", "CK471", "CK321"}
    assert bool(found) == _leaves(pieces), f"{GENERATED.format(**pieces)}\n{said(v)}"
    assert not any("stays inside" in u for u in v.uncovered), said(v)


@pytest.mark.parametrize(
    ("body", "mended"),
    [
        ("store(y[i], 1.0, mask=i <= N)", "store(y[i], 1.0, mask=i < N)"),
        ("if N >= i:\n            store(y[i], 1.0)", "if N > i:\n            store(y[i], 1.0)"),
        (
            "ok = u >= 0 and i<=N\n        store(y[i], 1.0, mask=ok)",
            "ok = u >= 0 and i<N\n        store(y[i], 1.0, mask=ok)",
        ),
    ],
)
def test_a_comparison_that_admits_one_too_many_is_mended(body: str, mended: str) -> None:
    text = TAIL.format(body=body)
    d = next(d for d in judged(text).diagnostics if d.code == "CK470")
    assert d.fix is not None
    assert apply_edits(text, [d.fix]) == TAIL.format(body=mended)
    assert not codes(judged(TAIL.format(body=mended)))


@pytest.mark.parametrize("name", ["one behind", "other size", "wrong branch"])
def test_other_slips_are_not_mended(name: str) -> None:
    for d in judged(TAIL.format(body=LEFT[name])).diagnostics:
        assert d.fix is None
