"""Patterns that naive checkers refuse, and the schedules that CAKE ships."""

from __future__ import annotations

from pathlib import Path

import pytest

from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.verify.phase import check
from tests.verify_phase.schedules import COPIES, GEMM, RAW, checked, edited, line, said

KERNELS = Path(__file__).parents[2] / "cake" / "kernels"

ONE_ARMING_ARRIVAL = edited(
    RAW,
    (
        "    X = smem(f32, (1, 32), stages=3)\n",
        "    X = smem(f32, (1, 32), stages=3)\n    Y = smem(f32, (1, 32), stages=3)\n",
    ),
    ("expect_tx(full, s, 128)", "expect_tx(full, s, 256)"),
    (
        "                arrive(full, s)\n",
        "                tma_load(Y[s], x[m, k * 32], barrier=full, slot=s)\n"
        "                arrive(full, s)\n",
    ),
    ("v = load(X[s][0, lane()])", "v = load(X[s][0, lane()]) + load(Y[s][0, lane()])"),
)
CP_ASYNC_RING = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=2)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with xs.fill() as s:
                cp_async(X[s], x[m, 0])
    with adder as u:
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][31 - lane()])
                if u == 0:
                    store(y[m, lane()], v)
"""
ARRIVE_AND_SYNC = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    X = smem(f32, (128,))
    first = role(warpgroups=1)
    second = role(warpgroups=1)
    ready = named_barrier(threads=256)
    done = named_barrier(threads=256)
    with first:
        for m in range(M):
            store(X[thread()], load(x[m, thread()]))
            named_arrive(ready)
            named_sync(done)
    with second:
        for m in range(M):
            named_sync(ready)
            store(y[m, thread()], load(X[127 - thread()]))
            named_arrive(done)
"""
BACK_TO_BACK = edited(
    GEMM,
    (
        "                wgmma(acc, A[s], B[s].T)\n",
        "                wgmma(acc, A[s][:, 0:32], B[s][:, 0:32].T)\n"
        "                wgmma(acc, A[s][:, 32:64], B[s][:, 32:64].T)\n",
    ),
    ("wgmma_wait(1)", "wgmma_wait(2)"),
)
COUNTERS = """
@cake.schedule(target="sm_80")
def kernel(ids: Tensor[i32, "M", 64], y: Tensor[i32, "M", 64]):
    (m,) = grid(M)
    counts = smem(i32, (64,))
    flag = smem(i32, (2,))
    work = role(warps=2)
    with work as u:
        store(counts[u * 32 + lane()], 0)
        store(flag[0], 1)
        cta_sync()
        reduce_add(counts[load(ids[m, u * 32 + lane()])], 1)
        if u == 0 and lane() == 0:
            store(flag[1], load(flag[0]))
        cta_sync()
        store(y[m, u * 32 + lane()], load(counts[63 - u * 32 - lane()]) + load(flag[1]))
"""
"""Atomics meet in one place, warps store one value, and neighbours write different words."""
EMPTY_GROUPS = edited(
    COPIES,
    (
        "            cp_async(X[(m",
        "            if m + 2 < M:\n                cp_async(X[(m",
    ),
)
OUT_OF_RANGE = edited(GEMM, ("x[m * 64, k * 64]", "x[m * 64 + 64 * k, 64 * K]"))
DEAD_WAIT = edited(
    RAW,
    (
        "                barrier_wait(full, s, n // 3 % 2)\n",
        "                barrier_wait(full, s, n // 3 % 2)\n" * 2,
    ),
)
ALIAS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    (m,) = grid(M)
    area = pool(128)
    X = smem(f32, (32,), pool=area, offset=0)
    Y = smem(f32, (32,), pool=area, offset=0)
    Z = smem(f32, (32,), stages=1)
    first = role(warps=1)
    second = role(warps=1)
    third = role(warps=1)
    ready = named_barrier(threads=64)
    zs = pipeline(Z, producer=second, consumer=third)
    with first:
        store(X[lane()], load(x[m, lane()]))
        named_arrive(ready)
    with second:
        named_sync(ready)
        v = load(X[31 - lane()])
        with zs.fill() as s:
            store(Z[s][lane()], v)
    with third:
        v = 0.0
        with zs.use() as s:
            v = load(Z[s][31 - lane()])
        store(Y[lane()], v)
        unit_sync()
        store(y[m, lane()], load(Y[31 - lane()]))
"""
"""Y lies where X was: a chain of hand-overs orders them, though no barrier joins their roles."""
EMPTY_TILES = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", 64], y: Tensor[bf16, "B", 64, 64]):
    tiles = persistent(B)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    math = role(warps=2)
    p = pipeline(X, producer=loader, consumer=math)
    with loader:
        for (b,) in tiles:
            for k in range(min(b, 3)):
                with p.fill() as s:
                    tma_load(X[s], x[k * 64, 0])
    with math as u:
        for (b,) in tiles:
            for k in range(min(b, 3)):
                with p.use() as s:
                    store(y[b, u, lane()], load(X[s][u, lane()]))
"""
LEGAL = {
    "several copies, one arming arrival": ONE_ARMING_ARRIVAL,
    "cp.async completed by the mbarrier": CP_ASYNC_RING,
    "bar.arrive and bar.sync of two warpgroups": ARRIVE_AND_SYNC,
    "back-to-back products": BACK_TO_BACK,
    "atomics, equal values, neighbouring words": COUNTERS,
    "empty commit groups": EMPTY_GROUPS,
    "copies out of range": OUT_OF_RANGE,
    "a dead wait": DEAD_WAIT,
    "an alias ordered by a chain": ALIAS,
    "empty tiles in every order": EMPTY_TILES,
}


@pytest.mark.parametrize("level", ["strict", "idiom"])
@pytest.mark.parametrize("name", LEGAL)
def test_legal_patterns_are_accepted(name: str, level: str) -> None:
    found = checked(LEGAL[name], level)  # type: ignore[arg-type]
    assert found == ((), ()), said(found)


TWINS = [
    (
        "several copies, one arming arrival",
        ("full, s, 256)", "full, s, 128)"),
        "CK459",
        "arrive(full",
    ),
    (
        "cp.async completed by the mbarrier",
        (
            "            with xs.use() as s:\n                v = load(X[s][31 - lane()])\n",
            "            v = load(X[m % 2][31 - lane()])\n            with xs.use() as s:\n",
        ),
        "CK453",
        "v = load(X",
    ),
    (
        "bar.arrive and bar.sync of two warpgroups",
        ("threads=256", "threads=128"),
        "CK460",
        "named_sync(ready)",
    ),
    (
        "atomics, equal values, neighbouring words",
        ("store(flag[0], 1)", "store(flag[0], u)"),
        "CK451",
        "store(flag[0], u)",
    ),
    (
        "an alias ordered by a chain",
        (
            "        with zs.use() as s:\n",
            "        store(Y[lane()], 1.0)\n        with zs.use() as s:\n",
        ),
        "CK452",
        "store(Y[lane()], 1.0)",
    ),
    (
        "empty tiles in every order",
        (
            "            for k in range(min(b, 3)):\n                with p.use",
            "            for k in range(min(b, 2)):\n                with p.use",
        ),
        "CK464",
        "tma_load",
    ),
]


@pytest.mark.parametrize(("name", "edit", "code", "at"), TWINS, ids=[t[0] for t in TWINS])
def test_their_wrong_twins_are_refused(
    name: str, edit: tuple[str, str], code: str, at: str
) -> None:
    text = edited(LEGAL[name], edit)
    diagnostics, _ = checked(text)
    found = [(d.code, line(text, d)) for d in diagnostics]
    assert any(c == code and at in where for c, where in found), found


def _shipped() -> list[tuple[str, Program]]:
    found = []
    for file in sorted(KERNELS.glob("*/sm_*.py")):
        for program in parse(file.read_text(), str(file)).programs:
            found.append((f"{file.parent.name}/{file.stem}:{program.name}", program))
    return found


SHIPPED = _shipped()


@pytest.mark.parametrize("program", [p for _, p in SHIPPED], ids=[n for n, _ in SHIPPED])
def test_shipped_schedules_are_accepted(program: Program) -> None:
    diagnostics, uncovered = check(program)
    assert not diagnostics, said((diagnostics, uncovered))
    assert all(u.startswith("whether the accesses to") for u in uncovered), uncovered
