"""Nearest centroid of every point without tensor cores: for f32, odd D, and D of any length.

`norms` computes |c|^2. In `assign` a CTA compares BM points with BN centroids at a time and adds
their products along D in slices of BD, which pass through shared memory as f32. A warp holds ROWS
points, whose elements all lanes read together, and each lane COLS centroids, read 16 bytes at a
time from padded rows. The lanes of a warp find the best of a point together, once, at the end: the
lowest distance, then the lowest index that has it. Norms beyond K are infinite and never win.
"""


@cake.schedule(target="sm_80")
def norms(
    c: Tensor[T, "B", "K", "D"],
    csq: Tensor[f32, "B", "K"],
    *,
    T: meta(bf16, f16, f32) = f32,
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


@cake.schedule(target="sm_80")
def assign(
    x: Tensor[T, "B", "N", "D"],
    c: Tensor[T, "B", "K", "D"],
    csq: Tensor[f32, "B", "K"],
    ids: Tensor[i32, "B", "N"],
    *,
    T: meta(bf16, f16, f32) = f32,
    WARPS: meta(4, 8) = 8,
    ROWS: meta(4, 8) = 8,
    COLS: meta(2, 4) = 4,
    BD: meta(16, 32) = 32,
):
    THREADS = WARPS * 32
    BM = WARPS * ROWS
    BN = COLS * 32
    STEP = THREADS // BD
    b, m = grid(B, cdiv(N, BM))
    X = smem(f32, (BM, BD + 4))
    C = smem(f32, (BN, BD + 4))
    math = role(warps=WARPS)

    with math as w:
        t = w * 32 + lane()
        best = registers(f32, ROWS, fill=inf)
        arg = registers(i32, ROWS, fill=0)
        points = registers(f32, ROWS * 4)
        centroids = registers(f32, COLS * 4)
        for k in range(0, K, BN):
            acc = registers(f32, ROWS * COLS, fill=0.0)
            for d in range(0, D, BD):
                cta_sync()
                e = d + t % BD
                for i in range(BM // STEP, unroll=True):
                    r = i * STEP + t // BD
                    n = m * BM + r
                    value = load(x[b, n, e], mask=n < N and e < D, fill=0.0)
                    store(X[r, t % BD], cast(value, f32))
                for i in range(BN // STEP, unroll=True):
                    r = i * STEP + t // BD
                    n = k + r
                    value = load(c[b, n, e], mask=n < K and e < D, fill=0.0)
                    store(C[r, t % BD], cast(value, f32))
                cta_sync()
                for a in range(0, BD, 4):
                    for j in static_range(COLS):
                        part = load(C[j * 32 + lane(), a : a + 4])
                        for q in static_range(4):
                            centroids[j * 4 + q] = part[q]
                    for i in static_range(ROWS):
                        part = load(X[w * ROWS + i, a : a + 4])
                        for j in static_range(i * COLS, i * COLS + COLS):
                            for q in static_range(4):
                                acc[j] = fma(part[q], centroids[j % COLS * 4 + q], acc[j])
            for j in range(COLS, unroll=True):
                n = k + j * 32 + lane()
                norm = load(csq[b, n], mask=n < K, fill=inf)
                for i in range(ROWS, unroll=True):
                    distance = fma(acc[i * COLS + j], -2.0, norm)
                    if distance < best[i]:
                        best[i] = distance
                        arg[i] = n
        for i in range(ROWS, unroll=True):
            lowest = warp_min(best[i])
            first = warp_min(select(best[i] == lowest, arg[i], K))
            n = m * BM + w * ROWS + i
            store(ids[b, n], first, mask=n < N)
