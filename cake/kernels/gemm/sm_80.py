"""D[M, N] = A[M, K] . B[N, K]^T with Ampere instructions: cp.async, ldmatrix, mma.sync.

Eight warps hold 64x64 each of a 128x256 CTA tile. A ring of K slices is filled by all threads with
cp.async, STAGES - 1 slices ahead. Fragments are loaded one 16-wide step ahead into a second set, B
first, because the products of a step begin with all of B and 16 rows of A. Each step also issues
its share of the copies, so that no instruction class comes in bursts.

The loop goes once round the ring, so that slots are known and addresses are constants behind
hoisted ones. Slices beyond K are filled with zeros, so the loop has no branch; K counts in whole
rounds of BK * STAGES, and for short K a smaller round is better. Tails in M and N: copies repeat
the last row (it feeds only elements that are never stored), stores clip.
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
    STEPS = BK // 16
    WARPS = WM * WN
    AR = BM // WARPS // STEPS
    BR = BN // WARPS // STEPS
    require(WARPS <= 8, K % 8 == 0, AR > 0, BR > 0)
    ROUNDS = cdiv(K, BK * STAGES)
    m, n = grid(cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    A = smem(T, (BM, BK), stages=STAGES, swizzle=2 * BK)
    B = smem(T, (BN, BK), stages=STAGES, swizzle=2 * BK)
    math = role(warps=WARPS)

    with math as w:
        wm = w // WN * TM
        wn = w % WN * TN
        ar = w * AR * STEPS
        br = w * BR * STEPS
        for p in static_range(STAGES - 1):
            for q in static_range(STEPS):
                cp_async(
                    A[p][ar + q * AR : ar + q * AR + AR],
                    a[m * BM + ar + q * AR, p * BK],
                    clamp=True,
                )
                cp_async(
                    B[p][br + q * BR : br + q * BR + BR],
                    b[n * BN + br + q * BR, p * BK],
                    clamp=True,
                )
            cp_async_commit()
        acc = fragment(f32, (TM, TN), fill=0.0)
        cp_async_wait(STAGES - 2)
        cta_sync()
        even_b = ldmatrix(B[0][wn : wn + TN, 0:16].T, operand="b")
        even_a = ldmatrix(A[0][wm : wm + TM, 0:16])
        odd_b = even_b
        odd_a = even_a
        for k in range(ROUNDS):
            for s in static_range(STAGES):
                AHEAD = (s + STAGES - 1) % STAGES
                for q in static_range(STEPS):
                    if q == STEPS - 1:
                        cp_async_commit()
                        cp_async_wait(STAGES - 2)
                        cta_sync()
                    READ = (s + (q + 1) // STEPS) % STAGES
                    NEXT = (q + 1) % STEPS * 16
                    if q % 2 == 0:
                        odd_b = ldmatrix(B[READ][wn : wn + TN, NEXT : NEXT + 16].T, operand="b")
                        odd_a = ldmatrix(A[READ][wm : wm + TM, NEXT : NEXT + 16])
                    else:
                        even_b = ldmatrix(B[READ][wn : wn + TN, NEXT : NEXT + 16].T, operand="b")
                        even_a = ldmatrix(A[READ][wm : wm + TM, NEXT : NEXT + 16])
                    if q < STEPS - 1:
                        for p in static_range(2 if q == 0 else 1):
                            I = q + 1 - (1 - p) * (1 if q == 0 else 0)
                            ra = ar + I * AR
                            rb = br + I * BR
                            kk = k * (BK * STAGES) + (s + STAGES - 1) * BK
                            cp_async(A[AHEAD][ra : ra + AR], a[m * BM + ra, kk], clamp=True)
                            cp_async(B[AHEAD][rb : rb + BR], b[n * BN + rb, kk], clamp=True)
                    if q % 2 == 0:
                        mma(acc, even_a, even_b)
                    else:
                        mma(acc, odd_a, odd_b)
        cp_async_wait(0)
        store(d[m * BM + wm, n * BN + wn], cast(acc, O))
