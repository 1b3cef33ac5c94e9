"""D[M, N] = A[M, K] . B[N, K]^T for Hopper: TMA, wgmma, warp-specialised, persistent.

One producer warp fills a ring of K slices; two math warpgroups hold 64 rows each of the CTA tile
and leave one group of products in flight. The epilogue goes through shared memory in chunks of 128
bytes a row, two buffers a warpgroup, and leaves by TMA, so that it overlaps with the next tile's
loads. Tails in M, N and K: TMA zero-fills loads and clips stores.

KN: B is stored K x N, and its slices are MN-major operands. BATCHED: all tensors have a leading B.
"""


@cake.schedule(target="sm_90a")
def gemm(
    a: Tensor[T, "B", "M", "K"] if BATCHED else Tensor[T, "M", "K"],
    b: (
        Tensor[T, "B", "K" if KN else "N", "N" if KN else "K"]
        if BATCHED
        else Tensor[T, "K" if KN else "N", "N" if KN else "K"]
    ),
    d: Tensor[O, "B", "M", "N"] if BATCHED else Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16, f32) = bf16,
    BATCHED: meta(False, True) = False,
    KN: meta(False, True) = False,
    WG: meta(1, 2) = 2,
    BN: meta(128, 256) = 256,
    STAGES: meta(3, 4, 5, 6) = 4,
    GROUP: meta(1, 4, 8, 16) = 8,
    REGS: meta(152, 168, 232) = 232,
):
    BM = 64 * WG
    BK = 64
    CHUNK = 32 if f32 == O else 64
    # BN is a multiple of 128: an even number of chunks lets the two epilogue buffers alternate
    # from tile to tile too.
    KT = cdiv(K, BK)
    require(K > 0)
    tiles = persistent(B if BATCHED else 1, cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    SA = smem(T, (BM, BK), stages=STAGES, swizzle=128)
    SB = smem(T, (BK, BN) if KN else (BN, BK), stages=STAGES, swizzle=128)
    SD = smem(O, (64, CHUNK), stages=2 * WG, swizzle=128)
    math = role(warpgroups=WG, regs=REGS)
    load = role(warps=1, regs=40)
    ab = pipeline(SA, SB, producer=load, consumer=math)

    with load:
        for i, m, n in tiles:
            for k in range(KT):
                row = k * BK if KN else n * BN
                col = n * BN if KN else k * BK
                with ab.fill() as s:
                    tma_load(SA[s], a[i, m * BM, k * BK] if BATCHED else a[m * BM, k * BK])
                    tma_load(SB[s], b[i, row, col] if BATCHED else b[row, col])

    with math as wg:
        acc = fragment(f32, (64, BN))
        for i, m, n in tiles:
            first = wait(ab)
            wgmma(
                acc, SA[first][wg * 64 : wg * 64 + 64], SB[first] if KN else SB[first].T, init=True
            )
            last = first
            for k in range(1, KT):
                s = wait(ab)
                wgmma(acc, SA[s][wg * 64 : wg * 64 + 64], SB[s] if KN else SB[s].T)
                wgmma_wait(1)
                release(ab, last)
                last = s
            wgmma_wait(0)
            release(ab, last)
            for c in static_range(BN // CHUNK):
                out = cast(columns(acc, c * CHUNK, CHUNK), O)
                tma_store_wait(1)
                if f32 == O:
                    store(SD[wg * 2 + c % 2], out)
                else:
                    stmatrix(SD[wg * 2 + c % 2], out)
                fence_async()
                unit_sync()
                row = m * BM + wg * 64
                col = n * BN + c * CHUNK
                tma_store(d[i, row, col] if BATCHED else d[row, col], SD[wg * 2 + c % 2])
                tma_store_commit()
        tma_store_wait(0)
