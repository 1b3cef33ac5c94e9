"""D[M, N] = A[M, K] . B[N, K]^T for Blackwell, two CTAs a tile of 256 rows.

The pair shares the columns of B: each CTA loads its 128 rows of A and half of the rows of B, and
the tensor cores of both read all of B. So each shared memory is filled with and read for half of B
only; by the estimate, shared memory is what bounds the schedule with one CTA a tile. Otherwise it
is that schedule: a ring of K slices, two accumulators in tensor memory, an epilogue that drains one
while the next tile is computed.

The CTA of rank 0 issues for both; its products wait for both CTAs' slices and both epilogues, and
their end is told to both. GROUP is more than 1, so that the CTAs of a pair take neighbours along M.
Tails in M, N and K: TMA zero-fills loads and clips stores; rows beyond M may be a whole CTA's.
"""


@cake.schedule(target="sm_100a")
def gemm(
    a: Tensor[T, "M", "K"],
    b: Tensor[T, "N", "K"],
    d: Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16) = bf16,
    BN: meta(128, 256) = 256,
    STAGES: meta(3, 4, 5, 6) = 6,
    GROUP: meta(4, 8, 16) = 8,
):
    BM = 128
    BK = 64
    HALF = BN // 2
    # BN is a multiple of 128: an even number of chunks lets the two epilogue buffers alternate
    # from tile to tile too.
    KT = cdiv(K, BK)
    require(K > 0)
    cluster(2)
    tiles = persistent(cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    A = smem(T, (BM, BK), stages=STAGES, swizzle=128)
    B = smem(T, (HALF, BK), stages=STAGES, swizzle=128)
    E = smem(O, (BM, 64), stages=2, swizzle=128)
    acc = tmem(f32, (BM, BN), stages=2, pair=True)
    word = smem(u32, (1,))
    drain = role(warpgroups=1)
    load = role(warps=1)
    math = role(warps=1)
    ab = pipeline(A, B, producer=load, consumer=math, pair=True)
    full = barrier(slots=2, arrivals=1)
    empty = barrier(slots=2, arrivals=8)

    with load:
        cluster_sync()
        for m, n in tiles:
            for k in range(KT):
                with ab.fill() as s:
                    tma_load(A[s], a[m * BM, k * BK])
                    tma_load(B[s], b[n * BN + cta_rank() * HALF, k * BK])
        cluster_sync()

    with math:
        tmem_alloc(acc, word[0])
        cluster_sync()
        half = 0
        phase = 1
        for m, n in tiles:
            if cta_rank() == 0:
                barrier_wait(empty, half, phase)
            tcgen05_fence_after()
            for k in range(KT):
                s = wait(ab)
                tcgen05_mma(acc[half], A[s], B[s].T, init=k == 0)
                tcgen05_commit(ab, s)
            tcgen05_commit(full, half)
            half = half ^ 1
            phase = phase ^ cast(half == 0, i32)
        cluster_sync()
        tmem_free(acc)

    with drain:
        cluster_sync()
        half = 0
        phase = 0
        for m, n in tiles:
            barrier_wait(full, half, phase)
            tcgen05_fence_after()
            for c in static_range(BN // 64):
                part = tcgen05_ld(acc[half], c * 64, 64)
                tcgen05_wait_ld(part)
                if c == BN // 64 - 1:
                    tcgen05_fence_before()
                    arrive(empty, half, peer=0)
                tma_store_wait(1)
                for j in static_range(8):
                    piece = registers(O, 8)
                    for i in static_range(8):
                        piece[i] = cast(part[j * 8 + i], O)
                    store(E[c % 2][thread(), j * 8 : j * 8 + 8], piece)
                fence_async()
                unit_sync()
                tma_store(d[m * BM, n * BN + c * 64], E[c % 2])
                tma_store_commit()
            half = half ^ 1
            phase = phase ^ cast(half == 0, i32)
        tma_store_wait(0)
        cluster_sync()
