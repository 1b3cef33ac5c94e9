"""D[M, N] = A[M, K] . B[N, K]^T for Hopper: TMA, wgmma, warp-specialised, persistent.

One producer warp fills a ring of K slices; two math warpgroups hold 64 rows each of the CTA tile
and leave one group of products in flight. The epilogue goes through shared memory in 64-column
chunks, two buffers a warpgroup, and leaves by TMA, so that it overlaps with the next tile's loads.
Tails in M, N and K: TMA zero-fills loads and clips stores.
"""


@cake.schedule(target="sm_90a")
def gemm(
    a: Tensor[T, "M", "K"],
    b: Tensor[T, "N", "K"],
    d: Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16) = bf16,
    WG: meta(1, 2) = 2,
    BN: meta(128, 256) = 256,
    STAGES: meta(3, 4, 5, 6) = 4,
    GROUP: meta(1, 4, 8, 16) = 8,
    REGS: meta(152, 168, 232) = 232,
):
    BM = 64 * WG
    BK = 64
    # BN is a multiple of 128: an even number of chunks lets the two epilogue buffers alternate
    # from tile to tile too.
    KT = cdiv(K, BK)
    require(K > 0)
    tiles = persistent(cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    A = smem(T, (BM, BK), stages=STAGES, swizzle=128)
    B = smem(T, (BN, BK), stages=STAGES, swizzle=128)
    E = smem(O, (64, 64), stages=2 * WG, swizzle=128)
    math = role(warpgroups=WG, regs=REGS)
    load = role(warps=1, regs=40)
    ab = pipeline(A, B, producer=load, consumer=math)

    with load:
        for m, n in tiles:
            for k in range(KT):
                with ab.fill() as s:
                    tma_load(A[s], a[m * BM, k * BK])
                    tma_load(B[s], b[n * BN, k * BK])

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
                out = cast(columns(acc, c * 64, 64), O)
                tma_store_wait(1)
                stmatrix(E[wg * 2 + c % 2], out)
                fence_async()
                unit_sync()
                tma_store(d[m * BM + wg * 64, n * BN + c * 64], E[wg * 2 + c % 2])
                tma_store_commit()
        tma_store_wait(0)
