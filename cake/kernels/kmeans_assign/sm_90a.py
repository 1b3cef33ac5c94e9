"""Nearest centroid of every point: argmin over k of |c_k|^2 - 2 x.c_k (Flash-KMeans), for Hopper.

`norms` computes |c|^2. `assign` keeps a tile of points resident and streams centroid tiles through
a ring; the products never leave registers: each lane keeps the best of its columns, and the four
lanes of a row meet once, after the last tile. Any N, K, B; D up to DP (TMA zero-fills the rest,
and norms beyond K read as NaN, which no comparison takes).

The math warpgroups take turns: one may issue its products only when the one before has issued HEAD
of its DP columns. Without the order all of them multiply together and then all compare together,
and the tensor core idles half of the time. Points have a producer warp of their own, so that the
next tile's points arrive while this tile's centroids stream.
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
    WG: meta(2, 3, 4) = 4,
    DP: meta(64, 128, 192, 256) = 128,
    HEAD: meta(48, 64, 96, 144, 192) = 96,
    BN: meta(64, 128, 256) = 128,
    STAGES: meta(2, 3, 4) = 3,
    GROUP: meta(1, 2, 4, 8) = 2,
):
    BM = 64 * WG
    require(D <= DP, HEAD < DP)
    tiles = persistent(B, cdiv(N, BM))
    KT = cdiv(K, BN)
    X = smem(T, (BM, DP), stages=2, swizzle=128)
    C = smem(T, (BN, DP), stages=STAGES, swizzle=128)
    Q = smem(f32, (BN,), stages=STAGES + 1)
    math = role(warpgroups=WG, regs=112)
    points = role(warps=1, regs=24)
    centroids = role(warps=1, regs=24)
    xs = pipeline(X, producer=points, consumer=math)
    cs = pipeline(C, producer=centroids, consumer=math)
    qs = pipeline(Q, producer=centroids, consumer=math)
    turn = named_barrier(threads=256, slots=WG)

    with points:
        for b, m in tiles:
            with xs.fill() as sx:
                tma_load(X[sx], x[b, m * BM, 0])

    with centroids:
        for b, m in tiles:
            for k in range(KT):
                with cs.fill() as sc:
                    tma_load(C[sc], c[b, k * BN, 0])
                with qs.fill() as sq:
                    tma_load(Q[sq], csq[b, k * BN], outside="nan")

    with math as wg:
        row = wg * 64
        if wg == WG - 1:
            named_arrive(turn, 0)
        for b, m in tiles:
            best = row_vector(f32, 64, fill=inf, partial=True)
            arg = row_vector(i32, 64, fill=0, partial=True)
            with xs.use() as sx:
                for k in range(KT):
                    sc = wait(cs)
                    acc = fragment(f32, (64, BN))
                    named_sync(turn, wg)
                    wgmma(acc, X[sx][row : row + 64, 0:HEAD], C[sc][:, 0:HEAD].T, init=True)
                    named_arrive(turn, (wg + 1) % WG)
                    wgmma(acc, X[sx][row : row + 64, HEAD:DP], C[sc][:, HEAD:DP].T)
                    sq = wait(qs)
                    wgmma_wait(0)
                    release(cs, sc)
                    d = fma(acc, -2.0, cols(Q[sq]))
                    best, arg = argmin_cols(d, best, arg, base=k * BN, group=GROUP)
                    fence_async()
                    release(qs, sq)
            nearest, index = argmin_quad(best, arg)
            store(ids[b, m * BM + row], index)
