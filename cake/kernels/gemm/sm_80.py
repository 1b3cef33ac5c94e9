"""D[M, N] = A[M, K] . B[N, K]^T with Ampere instructions: cp.async, ldmatrix, mma.sync.

Eight warps hold 64x64 each of a 128x256 CTA tile. A ring of K slices is filled by all threads with
cp.async, STAGES - 1 slices ahead; one barrier a slice. Tails: cp.async zero-fills, stores clip.
"""


@cake.schedule(target="sm_80")
def gemm(
    a: Tensor[T, "M", "K"],
    b: Tensor[T, "N", "K"],
    d: Tensor[O, "M", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    O: meta(bf16, f16, f32) = bf16,
    WM: meta(1, 2, 4) = 2,
    WN: meta(1, 2, 4) = 4,
    TM: meta(32, 64) = 64,
    TN: meta(32, 64) = 64,
    BK: meta(32, 64) = 64,
    STAGES: meta(2, 3, 4, 6) = 3,
    GROUP: meta(1, 4, 8, 16) = 16,
):
    BM = WM * TM
    BN = WN * TN
    WARPS = WM * WN
    require(WARPS <= 8, K % 8 == 0)
    KT = cdiv(K, BK)
    m, n = grid(cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    A = smem(T, (BM, BK), stages=STAGES, swizzle=2 * BK)
    B = smem(T, (BN, BK), stages=STAGES, swizzle=2 * BK)
    math = role(warps=WARPS)
    AR = BM // WARPS
    BR = BN // WARPS

    with math as w:
        wm = w // WN * TM
        wn = w % WN * TN
        acc = fragment(f32, (TM, TN), fill=0.0)
        for p in static_range(STAGES - 1):
            cp_async(A[p][w * AR : w * AR + AR], a[m * BM + w * AR, p * BK])
            cp_async(B[p][w * BR : w * BR + BR], b[n * BN + w * BR, p * BK])
            cp_async_commit()
        for k in range(KT):
            cp_async_wait(STAGES - 2)
            cta_sync()
            ahead = k + STAGES - 1
            if ahead < KT:
                slot = ahead % STAGES
                cp_async(A[slot][w * AR : w * AR + AR], a[m * BM + w * AR, ahead * BK])
                cp_async(B[slot][w * BR : w * BR + BR], b[n * BN + w * BR, ahead * BK])
            cp_async_commit()
            stage = k % STAGES
            for kk in static_range(BK // 16):
                fa = ldmatrix(A[stage][wm : wm + TM, kk * 16 : kk * 16 + 16])
                fb = ldmatrix(B[stage][wn : wn + TN, kk * 16 : kk * 16 + 16].T, operand="b")
                mma(acc, fa, fb)
        cp_async_wait(0)
        store(d[m * BM + wm, n * BN + wn], cast(acc, O))
