"""The k nearest database rows of every query, k up to 32, by lists that stay in registers.

`norms` computes |x|^2. `scan` splits the database over the CTAs; each lane keeps, sorted in
registers, the KP least |x|^2 - 2 q.x of the columns it holds of its two rows. A tile whose least
value does not enter a list is skipped; else values enter one after another, least first. `merge`
reads the lists of all splits, one warp a query, and takes the least head k times.

Beside `sm_90a.py` this one writes no intermediate that grows with the database, but its time
depends on the data: rows that come nearer and nearer enter a list each. A distance that is NaN
counts as +infinity, so both become the largest finite number; infinity marks rows beyond M.
"""


@cake.schedule(target="sm_90a")
def norms(
    x: Tensor[T, "B", "M", "D"],
    xsq: Tensor[f32, "B", "M"],
    *,
    T: meta(bf16, f16) = bf16,
):
    require(D % 8 == 0)
    b, block = grid(B, cdiv(M, 32))
    rows_ = role(warps=8)

    with rows_ as u:
        m = block * 32 + u * 4 + lane() // 8
        total = 0.0
        if m < M:
            for d in range(lane() % 8 * 8, D, 64):
                v = load(x[b, m, d], width=8)
                for i in static_range(8):
                    e = cast(v[i], f32)
                    total = fma(e, e, total)
        for i in static_range(3):
            total = total + shfl_xor(total, 1 << i)
        if m < M and lane() % 8 == 0:
            store(xsq[b, m], total)


@cake.schedule(target="sm_90a")
def scan(
    q: Tensor[T, "B", "Q", "D"],
    x: Tensor[T, "B", "M", "D"],
    xsq: Tensor[f32, "B", "M"],
    values: Tensor[f32, "B", "Q", 4 * SPLITS, KP],
    indices: Tensor[i32, "B", "Q", 4 * SPLITS, KP],
    *,
    T: meta(bf16, f16) = bf16,
    WG: meta(1, 2) = 2,
    DP: meta(64, 128, 256, 512, 1024) = 128,
    BN: meta(64, 128) = 64,
    SPLITS: meta(1, 8, 16, 32, 64, 128) = 64,
    KP: meta(8, 16, 32) = 16,
):
    W = min(WG, max(1, 1024 // DP))
    BM = 64 * W
    STAGES = min(8, (220000 - 2 * BM * DP) // (128 * BN))
    LARGEST = 3.4028234663852886e38
    require(D > 0, D <= DP, D % 8 == 0, M > 0)
    NT = cdiv(M, BN)
    PART = cdiv(NT, SPLITS)
    DT = cdiv(D, 64)
    b, m, part = grid(B, cdiv(Q, BM), SPLITS)
    start = min(part * PART, NT)
    stop = min(start + PART, NT)
    A = smem(T, (BM, DP), stages=1, swizzle=128)
    C = smem(T, (BN, 64), stages=STAGES, swizzle=128)
    S = smem(f32, (BN,), stages=4)
    math = role(warpgroups=W, regs=232)
    copy = role(warps=1, regs=32)
    squares = role(warps=1, regs=32)
    queries = pipeline(A, producer=copy, consumer=math)
    rows_ = pipeline(C, producer=copy, consumer=math)
    sums = pipeline(S, producer=squares, consumer=math)

    with copy:
        with queries.fill() as s:
            tma_load(A[s], q[b, m * BM, 0])
        for n in range(start, stop):
            for i in range(DT):
                with rows_.fill() as s:
                    tma_load(C[s], x[b, n * BN, i * 64])

    with squares:
        for n in range(start, stop):
            with sums.fill() as s:
                for i in static_range(BN // 32):
                    at = i * 32 + lane()
                    store(S[s][at], load(xsq[b, n * BN + at], mask=n * BN + at < M, fill=0.0))

    with math as wg:
        row = wg * 64
        near_0 = registers(f32, KP, fill=inf)
        near_1 = registers(f32, KP, fill=inf)
        at_0 = registers(i32, KP, fill=-1)
        at_1 = registers(i32, KP, fill=-1)
        sq = wait(queries)
        for n in range(start, stop):
            acc = fragment(f32, (64, BN))
            last = wait(rows_)
            wgmma(acc, A[sq][row : row + 64, 0:64], C[last].T, init=True)
            for i in range(1, DT):
                sc = wait(rows_)
                wgmma(acc, A[sq][row : row + 64, i * 64 : i * 64 + 64], C[sc].T)
                wgmma_wait(1)
                release(rows_, last)
                last = sc
            ss = wait(sums)
            wgmma_wait(0)
            release(rows_, last)
            acc = min(fma(acc, -2.0, cols(S[ss])), LARGEST)
            release(sums, ss)
            if (n + 1) * BN > M:
                acc = select(col_index(BN) + n * BN < M, acc, inf)
            best = row_vector(f32, 64, fill=inf, partial=True)
            arg = row_vector(i32, 64, fill=-1, partial=True)
            best, arg = argmin_cols(acc, best, arg, base=n * BN, group=4)
            least = lanes(best)
            where = lanes(arg)
            while least[0] < near_0[KP - 1] or least[1] < near_1[KP - 1]:
                topk_insert(near_0, at_0, least[0], where[0])
                topk_insert(near_1, at_1, least[1], where[1])
                acc = select(col_index(BN) + n * BN == arg, inf, acc)
                none = row_vector(f32, 64, fill=inf, partial=True)
                nowhere = row_vector(i32, 64, fill=-1, partial=True)
                best, arg = argmin_cols(acc, none, nowhere, base=n * BN, group=4)
        release(queries, sq)
        mine = m * BM + row + warp() * 16 + lane() // 4
        list_ = part * 4 + lane() % 4
        if mine < Q:
            store(values[b, mine, list_, 0], near_0)
            store(indices[b, mine, list_, 0], at_0)
        if mine + 8 < Q:
            store(values[b, mine + 8, list_, 0], near_1)
            store(indices[b, mine + 8, list_, 0], at_1)


@cake.schedule(target="sm_90a")
def merge(
    q: Tensor[T, "B", "Q", "D"],
    values: Tensor[f32, "B", "Q", 4 * SPLITS, KP],
    indices: Tensor[i32, "B", "Q", 4 * SPLITS, KP],
    distances: Tensor[f32, "B", "Q", "k"],
    ids: Tensor[i32, "B", "Q", "k"],
    *,
    T: meta(bf16, f16) = bf16,
    SPLITS: meta(1, 8, 16, 32, 64, 128) = 64,
    KP: meta(8, 16, 32) = 16,
):
    require(k <= KP)
    b, block = grid(B, cdiv(Q, 4))
    queries = role(warps=4)

    with queries as u:
        query = block * 4 + u
        if query < Q:
            norm = 0.0
            for d in range(lane(), D, 32):
                e = cast(load(q[b, query, d]), f32)
                norm = fma(e, e, norm)
            norm = warp_sum(norm)
            near = registers(f32, KP, fill=inf)
            at = registers(i32, KP, fill=2147483647)
            for list_ in range(lane(), 4 * SPLITS, 32):
                v = load(values[b, query, list_, 0], width=KP)
                w = load(indices[b, query, list_, 0], width=KP)
                for i in range(KP, unroll=True):
                    if v[i] < near[KP - 1]:
                        topk_insert(near, at, v[i], w[i])
            for j in range(k):
                best = warp_min(near[0])
                first = warp_min(select(near[0] == best, at[0], 2147483647))
                if at[0] == first:
                    distance = select(best >= 3.4028234663852886e38, inf, max(norm + best, 0.0))
                    store(distances[b, query, j], distance)
                    store(ids[b, query, j], first)
                    for i in range(KP - 1, unroll=True):
                        near[i] = near[i + 1]
                        at[i] = at[i + 1]
                    near[KP - 1] = inf
                    at[KP - 1] = 2147483647
