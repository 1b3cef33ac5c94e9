"""Nearest centroid of every point: argmin over k of |c_k|^2 - 2 x.c_k, with Ampere instructions.

`norms` computes |c|^2. In `assign` each warp keeps ROWS points in registers as A operands, so that
only centroids pass through shared memory in the loop, and each fragment of them serves ROWS points.
Centroid tiles come through a ring of cp.async copies. The products never leave registers: each lane
keeps the best of its columns, and the four lanes of a row meet once, after the last tile. Small
CTAs, two to an SM, so that one may compare while the other multiplies.

Any N, K, B; D up to DP, in rows of a multiple of COPY bytes. Copies are zero beyond N, K and D;
norms beyond K are taken as infinite, which no comparison takes. That is done without a branch: one
between the products and the comparisons would keep the compiler from overlapping them.
"""


@cake.schedule(target="sm_80")
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


@cake.schedule(target="sm_80")
def assign(
    x: Tensor[T, "B", "N", "D"],
    c: Tensor[T, "B", "K", "D"],
    csq: Tensor[f32, "B", "K"],
    ids: Tensor[i32, "B", "N"],
    *,
    T: meta(bf16, f16) = bf16,
    DP: meta(64, 128, 192, 256, 384, 512) = 128,
    BN: meta(32, 64, 128) = 64,
    ROWS: meta(16, 32, 64) = 32,
    WARPS: meta(4, 8) = 4,
    STAGES: meta(2, 3, 4) = 2,
    BLOCKS: meta(1, 2, 3) = 2,
    GROUP: meta(1, 2, 4, 8) = 4,
    COPY: meta(4, 8, 16) = 16,
):
    BM = WARPS * ROWS
    PART = BN // WARPS
    # Registers of a thread: accumulator, points, norms, and what addresses and comparisons take.
    REGS = ROWS * BN // 32 + ROWS * DP // 64 + BN // 4 + 54
    require(D <= DP, D % (COPY // 2) == 0, REGS <= 254, REGS * 32 * WARPS * BLOCKS <= 65536)
    launch(min_blocks=BLOCKS)
    b, m = grid(B, cdiv(N, BM))
    X = smem(T, (BM, DP), swizzle=128)
    C = smem(T, (BN, DP), stages=STAGES, swizzle=128)
    Q = smem(f32, (BN,), stages=STAGES)
    math = role(warps=WARPS)

    with math as w:
        row = w * ROWS
        part = w * PART
        cp_async(X[row : row + ROWS], x[b, m * BM + row, 0], bytes=COPY)
        for s in static_range(STAGES - 1):
            cp_async(C[s][part : part + PART], c[b, s * BN + part, 0], bytes=COPY)
            cp_async(Q[s][part : part + PART], csq[b, s * BN + part], bytes=4)
            cp_async_commit()
        cp_async_wait(STAGES - 2)
        unit_sync()
        points = ldmatrix(X[row : row + ROWS])
        best = row_vector(f32, ROWS, fill=inf, partial=True)
        arg = row_vector(i32, ROWS, fill=0, partial=True)
        stage = 0
        ahead = STAGES - 1
        for k in range(0, K, BN):
            cp_async_wait(STAGES - 2)
            cta_sync()
            new = k + (STAGES - 1) * BN + part
            cp_async(C[ahead][part : part + PART], c[b, new, 0], bytes=COPY)
            cp_async(Q[ahead][part : part + PART], csq[b, new], bytes=4)
            cp_async_commit()
            acc = fragment(f32, (ROWS, BN), fill=0.0)
            for i in static_range(0, DP, 16):
                centroids = ldmatrix(C[stage][:, i : i + 16].T, operand="b")
                mma(acc, columns(points, i, 16), centroids)
            q = select(col_index(BN) + k < K, cols(Q[stage]), inf)
            best, arg = argmin_cols(fma(acc, -2.0, q), best, arg, base=k, group=GROUP)
            stage = select(stage == STAGES - 1, 0, stage + 1)
            ahead = select(ahead == STAGES - 1, 0, ahead + 1)
        cp_async_wait(0)
        nearest, index = argmin_quad(best, arg)
        store(ids[b, m * BM + row], index)
