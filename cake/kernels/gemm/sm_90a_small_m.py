"""D[M, N] = A[M, K] . B[N, K]^T for few rows of A (decoding), for Hopper.

The operands change places: 64 rows of B are the tensor core's M, the rows of A its N, so no work is
wasted on rows that do not exist. The time is that of reading B once; two CTAs of a cluster share the K
range of a tile to keep all SMs reading, and the second adds its partial sums to the first's through
distributed shared memory.
"""


@cake.schedule(target="sm_90a")
def gemm(
    a: Tensor[T, "M", "K"],
    b: Tensor[T, "N", "K"],
    d: Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16, f32) = bf16,
    MP: meta(16, 32, 64, 128) = 16,
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
    P = smem(f32, (MP, 68))
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
        r = lanes(acc)
        rows = warp() * 16 + lane() // 4
        cols_ = lane() % 4 * 2
        if half == 1:
            for i in static_range(MP // 2):
                store(P[i // 4 * 8 + cols_ + i % 2, rows + i % 4 // 2 * 8], r[i])
        cluster_sync()
        if half == 0:
            for i in static_range(MP // 2):
                other = load(P[i // 4 * 8 + cols_ + i % 2, rows + i % 4 // 2 * 8], peer=1)
                store(P[i // 4 * 8 + cols_ + i % 2, rows + i % 4 // 2 * 8], r[i] + other)
            unit_sync()
            for i in static_range(MP // 2):
                m = i * 2 + thread() // 64
                column = thread() % 64
                inside = m < M and n * 64 + column < N
                value = load(P[m, column])
                store(d[m, n * 64 + column], cast(value, O), mask=inside)
        cluster_sync()
