"""Nearest centroid of every point: argmin over k of |c_k|^2 - 2 x.c_k (Flash-KMeans), for Hopper.

`norms` computes |c|^2. `assign` keeps a tile of points resident and streams centroid tiles through a
ring; the products never leave registers: each lane keeps the best of its columns, and the four lanes
of a row meet once, after the last tile. Any N, K, B; D up to DP (TMA zero-fills the rest).
"""


@cake.schedule(target="sm_90a")
def norms(
    c: Tensor[T, "B", "K", "D"],
    csq: Tensor[f32, "B", "K"],
    *,
    T: meta(bf16, f16) = bf16,
):
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        k = block * 8 + u
        if k < K:
            total = 0.0
            for d in range(lane(), D, 32):
                e = cast(load(c[b, k, d]), f32)
                total = fma(e, e, total)
            total = warp_sum(total)
            if lane() == 0:
                store(csq[b, k], total)


@cake.schedule(target="sm_90a")
def assign(
    x: Tensor[T, "B", "N", "D"],
    c: Tensor[T, "B", "K", "D"],
    csq: Tensor[f32, "B", "K"],
    ids: Tensor[i32, "B", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    WG: meta(1, 2, 3, 4) = 4,
    DP: meta(64, 128, 192, 256) = 128,
    BN: meta(64, 128, 256) = 128,
    STAGES: meta(2, 3, 4) = 3,
    GROUP: meta(1, 2, 4, 8) = 4,
):
    BM = 64 * WG
    require(D <= DP)
    tiles = persistent(B, cdiv(N, BM))
    KT = cdiv(K, BN)
    X = smem(T, (BM, DP), stages=2, swizzle=128)
    C = smem(T, (BN, DP), stages=STAGES, swizzle=128)
    Q = smem(f32, (BN,), stages=STAGES)
    math = role(warpgroups=WG, regs=112)
    load = role(warps=1, regs=24)
    xs = pipeline(X, producer=load, consumer=math)
    cs = pipeline(C, Q, producer=load, consumer=math)

    with load:
        for b, m in tiles:
            with xs.fill() as sx:
                tma_load(X[sx], x[b, m * BM, 0])
            for k in range(KT):
                with cs.fill() as sc:
                    tma_load(C[sc], c[b, k * BN, 0])
                    tma_load(Q[sc], csq[b, k * BN])

    with math as wg:
        for b, m in tiles:
            best = row_vector(f32, 64, fill=inf, partial=True)
            arg = row_vector(i32, 64, fill=0, partial=True)
            with xs.use() as sx:
                for k in range(KT):
                    with cs.use() as sc:
                        acc = fragment(f32, (64, BN))
                        wgmma(acc, X[sx][wg * 64 : wg * 64 + 64], C[sc].T, init=True)
                        q = cols(Q[sc])
                        if (k + 1) * BN > K:
                            q = select(col_index(BN) + k * BN < K, q, inf)
                        wgmma_wait(0)
                        d = fma(acc, -2.0, q)
                        best, arg = argmin_cols(d, best, arg, base=k * BN, group=GROUP)
            nearest, index = argmin_quad(best, arg)
            store(ids[b, m * BM + wg * 64], index)
