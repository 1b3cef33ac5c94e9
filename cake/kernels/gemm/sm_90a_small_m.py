"""D[M, N] = A[M, K] . B[N, K]^T for few rows of A (decoding), for Hopper.

The operands change places: 64 rows of B are the tensor core's M, the rows of A its N, so no work
is wasted on rows that do not exist. The time is that of reading B once; two CTAs of a cluster
share the K range of a tile to keep all SMs reading. Each then adds the other's partial sums, read
from its shared memory, for one half of the rows of A.
"""


@cake.schedule(target="sm_90a")
def gemm(
    a: Tensor[T, "M", "K"],
    b: Tensor[T, "N", "K"],
    d: Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16) = bf16,
    MP: meta(32, 64, 128) = 32,
    STAGES: meta(4, 6, 8, 10, 12) = 8,
):
    require(M <= MP, K > 0)
    cluster(2)
    KT = cdiv(K, 64)
    HALF = cdiv(KT, 2)
    n, half = grid(cdiv(N, 64), 2)
    start = half * HALF
    stop = min(start + HALF, KT)
    W = smem(T, (64, 64), stages=STAGES, swizzle=128)
    X = smem(T, (MP, 64), stages=STAGES, swizzle=128)
    HM = MP // 2
    P = smem(f32, (64, HM), swizzle=128 if HM >= 32 else 4 * HM)
    E = smem(O, (HM, 64), swizzle=128)
    math = role(warpgroups=1)
    load_ = role(warps=1)
    ring = pipeline(W, X, producer=load_, consumer=math)

    with load_:
        for k in range(start, stop):
            with ring.fill() as s:
                tma_load(W[s], b[n * 64, k * 64])
                tma_load(X[s], a[0, k * 64])
        cluster_sync()
        cluster_sync()

    with math:
        acc = fragment(f32, (64, MP), fill=0.0)
        if start < stop:
            last = wait(ring)
            wgmma(acc, W[last], X[last].T)
            for k in range(start + 1, stop):
                s = wait(ring)
                wgmma(acc, W[s], X[s].T)
                wgmma_wait(1)
                release(ring, last)
                last = s
            wgmma_wait(0)
            release(ring, last)
        mine = fragment(f32, (64, HM))
        if half == 0:
            store(P, columns(acc, HM, HM))
            mine = columns(acc, 0, HM)
        else:
            store(P, columns(acc, 0, HM))
            mine = columns(acc, HM, HM)
        cluster_sync()
        r = lanes(mine)
        others = registers(f32, HM // 2)
        row = warp() * 16 + lane() // 4
        for i in static_range(HM // 4):
            at = i // 2 * 8 + lane() % 4 * 2
            pair = load(P[row + i % 2 * 8, at : at + 2], peer=1 - half)
            others[2 * i] = pair[0]
            others[2 * i + 1] = pair[1]
        for i in static_range(HM // 2):
            r[i] = r[i] + others[i]
        stmatrix(E.T, cast(mine, O))
        fence_async()
        unit_sync()
        tma_store(d[half * HM, n * 64], E)
        tma_store_commit()
        tma_store_wait(0)
        cluster_sync()
