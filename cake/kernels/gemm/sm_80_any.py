"""D = A . B^T for every shape and layout: rows of A and B may begin at any element.

cp.async and TMA copy 16 bytes at a time from addresses that are multiples of 16, so the faster
schedules refuse rows of odd length. Here each thread loads single elements, with a mask at the
tails, and stores them to shared memory for ldmatrix and mma.sync; CTAs that share an SM hide each
other's loads. PER neighbouring lanes share a row: more columns and fewer rows a thread mean fewer
addresses. Rows of shared memory are padded by 16 bytes against bank conflicts.

KN: B is stored K x N. BATCHED: all tensors have a leading B.
"""


@cake.schedule(target="sm_80")
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
    WM: meta(1, 2, 4) = 2,
    WN: meta(1, 2, 4) = 4,
    TM: meta(16, 32, 64) = 64,
    TN: meta(16, 32, 64) = 32,
    BLOCKS: meta(1, 2) = 2,
    GROUP: meta(1, 4, 8, 16) = 8,
):
    BM = WM * TM
    BN = WN * TN
    BK = 32
    THREADS = WM * WN * 32
    PER = 16 if KN and THREADS > 256 else 8
    HIGH = BK if KN else BN
    WIDE = BN if KN else BK
    i, m, n = grid(B if BATCHED else 1, cdiv(M, BM), cdiv(N, BN), raster=GROUP)
    SA = smem(T, (BM, BK + 8))
    SB = smem(T, (HIGH, WIDE + 8))
    math = role(warps=WM * WN)
    launch(min_blocks=BLOCKS)

    with math as w:
        t = w * 32 + lane()
        wm = w // WN * TM
        wn = w % WN * TN
        acc = fragment(f32, (TM, TN), fill=0.0)
        for k in range(0, K, BK):
            cta_sync()
            for e in range(BM * 8 // THREADS, unroll=True):
                r = e * (THREADS // 8) + t // 8
                row = m * BM + r
                for j in static_range(BK // 8):
                    col = k + j * 8 + t % 8
                    inside = row < M and col < K
                    store(
                        SA[r, j * 8 + t % 8],
                        load(a[i, row, col] if BATCHED else a[row, col], mask=inside, fill=0.0),
                    )
            for e in range(HIGH * PER // THREADS, unroll=True):
                r = e * (THREADS // PER) + t // PER
                row = r + (k if KN else n * BN)
                for j in static_range(WIDE // PER):
                    col = j * PER + t % PER + (n * BN if KN else k)
                    inside = row < (K if KN else N) and col < (N if KN else K)
                    store(
                        SB[r, j * PER + t % PER],
                        load(b[i, row, col] if BATCHED else b[row, col], mask=inside, fill=0.0),
                    )
            cta_sync()
            for s in static_range(BK // 16):
                fa = ldmatrix(SA[wm : wm + TM, s * 16 : s * 16 + 16])
                if KN:
                    fb = ldmatrix(SB[s * 16 : s * 16 + 16, wn : wn + TN], operand="b")
                else:
                    fb = ldmatrix(SB[wn : wn + TN, s * 16 : s * 16 + 16].T, operand="b")
                mma(acc, fa, fb)
        row = m * BM + wm
        col = n * BN + wn
        store(d[i, row, col] if BATCHED else d[row, col], cast(acc, O))
