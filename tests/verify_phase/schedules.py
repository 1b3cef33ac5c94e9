"""Right schedules of several kinds, and edits that make them wrong in one way each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from cake.diag import Diagnostic
from cake.lang.elaborate import parse
from cake.verify.phase import Found, check

RAW = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", "K"]):
    require(K % 32 == 0)
    tiles = persistent(M)
    X = smem(f32, (1, 32), stages=3)
    copier = role(warps=1)
    adder = role(warps=2)
    full = barrier(slots=3, arrivals=1)
    free = barrier(slots=3, arrivals=2)
    with copier:
        n = 0
        for (m,) in tiles:
            for k in range(K // 32):
                s = n % 3
                barrier_wait(free, s, (n // 3 + 1) % 2)
                expect_tx(full, s, 128)
                tma_load(X[s], x[m, k * 32], barrier=full, slot=s)
                arrive(full, s)
                n = n + 1
    with adder as u:
        n = 0
        for (m,) in tiles:
            for k in range(K // 32):
                s = n % 3
                barrier_wait(full, s, n // 3 % 2)
                v = load(X[s][0, lane()])
                arrive(free, s)
                if u == 0:
                    store(y[m, k * 32 + lane()], v + 1.0)
                n = n + 1
"""
"""A ring by hand: TMA, raw mbarriers, a counter that runs on over tiles."""

GEMM = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", "K"], w: Tensor[bf16, 64, "K"], y: Tensor[bf16, "M", 64]):
    require(K > 0)
    tiles = persistent(cdiv(M, 64))
    A = smem(bf16, (64, 64), stages=3, swizzle=128)
    B = smem(bf16, (64, 64), stages=3, swizzle=128)
    E = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    math = role(warpgroups=1)
    ab = pipeline(A, B, producer=loader, consumer=math)
    with loader:
        for (m,) in tiles:
            for k in range(cdiv(K, 64)):
                with ab.fill() as s:
                    tma_load(A[s], x[m * 64, k * 64])
                    tma_load(B[s], w[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64))
        e = 0
        for (m,) in tiles:
            last = wait(ab)
            wgmma(acc, A[last], B[last].T, init=True)
            for k in range(1, cdiv(K, 64)):
                s = wait(ab)
                wgmma(acc, A[s], B[s].T)
                wgmma_wait(1)
                release(ab, last)
                last = s
            wgmma_wait(0)
            release(ab, last)
            tma_store_wait(1)
            stmatrix(E[e], cast(acc, bf16))
            fence_async()
            unit_sync()
            tma_store(y[m * 64, 0], E[e])
            tma_store_commit()
            e = 1 - e
        tma_store_wait(0)
"""
"""A ring with one product in flight, and an epilogue of two store buffers."""

PINGPONG = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (32,), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    ready = named_barrier(threads=64, slots=2)
    done = named_barrier(threads=64, slots=2)
    with copier:
        for m in range(M):
            s = m % 2
            if m > 1:
                named_sync(done, s)
            store(X[s][lane()], load(x[m, lane()]))
            named_arrive(ready, s)
    with adder:
        for m in range(M):
            s = m % 2
            named_sync(ready, s)
            v = load(X[s][lane()])
            named_arrive(done, s)
            store(y[m, lane()], v + 1.0)
"""
"""A hand-over through named barriers, two slots in each direction."""

EXCHANGE = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", "K", 32], y: Tensor[f32, "M", 32]):
    require(M % 2 == 0)
    cluster(2)
    (m,) = grid(M)
    P = smem(f32, (32,))
    work = role(warps=1)
    with work:
        total = 0.0
        for k in range(K):
            store(P[lane()], load(x[m, k, lane()]))
            cluster_sync()
            total = total + load(P[lane()], peer=1 - cta_rank())
            cluster_sync()
        store(y[m, lane()], total)
"""
"""Two CTAs read each other's shared memory."""

MULTICAST = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", "K", 64], y: Tensor[bf16, 2, "K", 64]):
    cluster(2)
    (m,) = grid(2)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    math = role(warps=2)
    p = pipeline(X, producer=loader, consumer=math, multicast=True)
    with loader:
        for k in range(K):
            with p.fill() as s:
                tma_load(X[s], x[0, k, 0], multicast=True)
    with math as u:
        for k in range(K):
            with p.use() as s:
                store(y[m, k, u * 32 + lane()], load(X[s][u, lane()]))
"""
"""A ring over the cluster."""

TCGEN05 = """
@cake.schedule(target="sm_100a")
def kernel(a: Tensor[bf16, "M", "K"], b: Tensor[bf16, "N", "K"], d: Tensor[f32, "M", "N"]):
    require(K > 0)
    tiles = persistent(cdiv(M, 128))
    A = smem(bf16, (128, 64), stages=3, swizzle=128)
    B = smem(bf16, (128, 64), stages=3, swizzle=128)
    T = tmem(f32, (128, 128), stages=2)
    word = smem(u32, (1,))
    out = role(warpgroups=1)
    loader = role(warps=1)
    math = role(warps=1)
    ab = pipeline(A, B, producer=loader, consumer=math)
    done = barrier(slots=2, arrivals=1)
    free = barrier(slots=2, arrivals=4)
    with loader:
        cta_sync()
        for (m,) in tiles:
            for k in range(cdiv(K, 64)):
                with ab.fill() as s:
                    tma_load(A[s], a[m * 128, k * 64])
                    tma_load(B[s], b[0, k * 64])
        cta_sync()
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        i = 0
        for (m,) in tiles:
            q = i % 2
            barrier_wait(free, q, (i // 2 + 1) % 2)
            tcgen05_fence_after()
            for k in range(cdiv(K, 64)):
                s = wait(ab)
                tcgen05_fence_after()
                tcgen05_mma(T[q], A[s], B[s].T, init=k == 0)
                tcgen05_commit(ab, s)
            tcgen05_commit(done, q)
            i = i + 1
        cta_sync()
        tmem_free(T)
    with out:
        cta_sync()
        i = 0
        for (m,) in tiles:
            q = i % 2
            barrier_wait(done, q, i // 2 % 2)
            tcgen05_fence_after()
            for c in static_range(4):
                r = tcgen05_ld(T[q], c * 32, 32)
                tcgen05_wait_ld(r)
                store(d[m * 128 + thread(), c * 32], r)
            tcgen05_fence_before()
            arrive(free, q)
            i = i + 1
        cta_sync()
"""
"""Two accumulators in tensor memory, the products of one while the other is read."""

COPIES = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 128], y: Tensor[f32, "M", 128]):
    X = smem(f32, (128,), stages=3)
    work = role(warps=4)
    with work as u:
        for p in static_range(2):
            cp_async(X[p][u * 32 : u * 32 + 32], x[p, u * 32])
            cp_async_commit()
        for m in range(M):
            cp_async_wait(1)
            cta_sync()
            store(y[m, u * 32 + lane()], load(X[m % 3][127 - u * 32 - lane()]))
            cp_async(X[(m + 2) % 3][u * 32 : u * 32 + 32], x[m + 2, u * 32])
            cp_async_commit()
        cp_async_wait(0)
"""
"""cp.async two steps ahead, each warp reading what another one copied."""

LENGTHS = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", 64], lens: Tensor[i32, "B"], y: Tensor[bf16, "B", 64, 64]):
    tiles = persistent(B)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    math = role(warps=2)
    p = pipeline(X, producer=loader, consumer=math)
    with loader:
        for (b,) in tiles:
            length = cdiv(load(lens[b]), 64)
            for k in range(length):
                with p.fill() as s:
                    tma_load(X[s], x[k * 64, 0])
    with math as u:
        for (b,) in tiles:
            n = cdiv(load(lens[b]), 64)
            for k in range(n):
                with p.use() as s:
                    store(y[b, u, lane()], load(X[s][u, lane()]))
"""
"""Trip counts that are read from memory, by every role for itself."""

RIGHT = {
    "raw": RAW,
    "gemm": GEMM,
    "pingpong": PINGPONG,
    "exchange": EXCHANGE,
    "multicast": MULTICAST,
    "tcgen05": TCGEN05,
    "copies": COPIES,
    "lengths": LENGTHS,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """An edit of a right schedule, the code that it brings, and the line that is reported."""

    name: str
    base: str
    edits: tuple[tuple[str, str], ...]
    code: str
    at: str

    @property
    def text(self) -> str:
        return edited(RIGHT[self.base], *self.edits)


def edited(text: str, *edits: tuple[str, str]) -> str:
    """A text after replacements, each of which must apply."""
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return text


def checked(text: str, level: Literal["strict", "idiom"] = "strict") -> Found:
    """The phase simulation of a text with one schedule."""
    parsed = parse(text, "example.py")
    assert parsed.ok, "\n".join(f"{d.span}: {d.message}" for d in parsed.diagnostics)
    (program,) = parsed.programs
    return check(program, level=level)


def line(text: str, d: Diagnostic) -> str:
    """The source line that a finding reports."""
    assert d.span is not None
    return text.split("\n")[d.span.line - 1].strip()


def said(found: Found) -> str:
    """Everything that a check says, for assertion messages."""
    diagnostics, uncovered = found
    return "\n".join([*(f"{d.span}: {d.code} {d.message}" for d in diagnostics), *uncovered])
