"""Small schedules that the tests of the emitter share."""

from __future__ import annotations

from typing import Any

from cake.ir.program import Program
from cake.lang.elaborate import parse

SCALE = """
@cake.schedule(target="sm_80")
def scale(x: Tensor[f32, "M", "N"], y: Tensor[f32, "M", "N"], a: f32, *, V: meta(1, 4) = 4):
    require(N % V == 0)
    m, b = grid(M, cdiv(N, 128 * V))
    work = role(warpgroups=1)
    with work:
        i = (b * 128 + thread()) * V
        inside = i < N
        v = load(x[m, i], V, mask=inside, fill=0.0)
        for j in range(V, unroll=True):
            v[j] = v[j] * a
        store(y[m, i], v, mask=inside)
"""

COPY = """
@cake.schedule(target="sm_90a")
def copy(x: Tensor[bf16, "M", "N"], y: Tensor[bf16, "M", "N"], *, S: meta(2, 3) = 2):
    tiles = persistent(cdiv(M, 64), cdiv(N, 64))
    X = smem(bf16, (64, 64), stages=S, swizzle=128)
    load = role(warps=1)
    save = role(warps=1)
    ring = pipeline(X, producer=load, consumer=save)
    with load:
        for m, n in tiles:
            with ring.fill() as s:
                tma_load(X[s], x[m * 64, n * 64])
    with save:
        for m, n in tiles:
            with ring.use() as s:
                tma_store(y[m * 64, n * 64], X[s])
                tma_store_commit()
                tma_store_wait(0)
"""

MIXED = """
@cake.schedule(target="sm_80")
def mixed(x: Tensor[f32, "M", "N"], flags: Tensor[i32, "M"], y: Tensor[bf16, "M", "N"]):
    m = grid(cdiv(M, 16))
    S = smem(f32, (16, 64), stages=2)
    w = role(warps=1)
    with w:
        acc = fragment(f32, (16, 64), fill=0.0)
        r = lanes(acc)
        i = 0
        while load(flags[i]) == 0:
            i = i + 1
        for k in range(i, N, 2):
            cp_async(S[k % 2], x[m * 16, k])
            cp_async_commit()
            cp_async_wait(0)
            unit_sync()
            acc = acc * 2.0 + cols(S[k % 2][0])
            for j in range(32, unroll=True):
                if r[j] > 1.0:
                    r[j] = 0.0
                elif r[j] > 0.5:
                    r[j] = r[j] * cast(k, f32)
                else:
                    r[j] = r[j] + 1.0
            unit_sync()
        out = cast(acc, bf16)
        o = lanes(out)
        o[3] = o[4]
        best = row_vector(f32, 16, fill=inf, partial=True)
        arg = row_vector(i32, 16, fill=0, partial=True)
        best, arg = argmin_cols(acc, best, arg)
        store(y[m * 16, 0], out)
"""

GEMM = """
@cake.schedule(target="sm_90a")
def gemm(
    a: Tensor[bf16, "M", "K"], b: Tensor[bf16, "N", "K"], d: Tensor[bf16, "M", "N"], *,
    BN: meta(128, 256) = 256,
):
    KT = cdiv(K, 64)
    require(K > 0)
    tiles = persistent(cdiv(M, 128), cdiv(N, BN), raster=8)
    A = smem(bf16, (128, 64), stages=3, swizzle=128)
    B = smem(bf16, (BN, 64), stages=3, swizzle=128)
    E = smem(bf16, (64, 64), stages=2, swizzle=128)
    math = role(warpgroups=2, regs=232)
    load = role(warps=1, regs=40)
    ab = pipeline(A, B, producer=load, consumer=math)
    with load:
        for m, n in tiles:
            for k in range(KT):
                with ab.fill() as s:
                    tma_load(A[s], a[m * 128, k * 64])
                    tma_load(B[s], b[n * BN, k * 64])
    with math as wg:
        acc = fragment(f32, (64, BN))
        for m, n in tiles:
            first = wait(ab)
            wgmma(acc, A[first][wg * 64 : wg * 64 + 64], B[first].T, init=True)
            last = first
            for k in range(1, KT):
                s = wait(ab)
                wgmma(acc, A[s][wg * 64 : wg * 64 + 64], B[s].T)
                wgmma_wait(1)
                release(ab, last)
                last = s
            wgmma_wait(0)
            release(ab, last)
            for c in static_range(BN // 64):
                tma_store_wait(0)
                unit_sync()
                stmatrix(E[wg], cast(columns(acc, c * 64, 64), bf16))
                fence_async()
                unit_sync()
                tma_store(d[m * 128 + wg * 64, n * BN + c * 64], E[wg])
                tma_store_commit()
        tma_store_wait(0)
"""


def program(source: str, **meta: Any) -> Program:
    """The only program of a source."""
    return parse(source, "k.py", meta=meta or None).program()
