"""The k nearest database rows of every query, exactly: squared distances by Hopper tensor cores.

Three kernels. `norms` computes |x|^2. `blocks` multiplies queries with tiles of BN database rows,
split over the CTAs, and keeps of each tile only the least |x|^2 - 2 q.x of every G = BN / 8
neighbouring rows. No element of the k nearest can lie outside the k blocks of least minimum (each
of those holds something nearer, or as near with a lower index), so `merge` picks these k blocks,
computes the distances of their rows as sums of squared differences, and sorts the k least.

Nothing depends on the data but the choice of blocks: time and exactness are those of random data
for any data. Any M, Q, B; D up to DP in multiples of 8; at most NG blocks. A distance that is NaN
counts as +infinity; ties go to the lower index.
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


@cake.inline
def kept_half(values, count, distance):
    """Of 2 count values a lane keeps the half that its bit ``distance`` says, folded with what
    the lane on the other side held of it."""
    upper = lane() & distance != 0
    half = registers(f32, count)
    for i in static_range(count):
        mine = select(upper, values[count + i], values[i])
        other = select(upper, values[i], values[count + i])
        half[i] = min(mine, shfl_xor(other, distance))
    return half


@cake.schedule(target="sm_90a")
def blocks(
    q: Tensor[T, "B", "Q", "D"],
    x: Tensor[T, "B", "M", "D"],
    xsq: Tensor[f32, "B", "M"],
    minima: Tensor[f32, "B", "Q", NG],
    *,
    T: meta(bf16, f16) = bf16,
    WG: meta(1, 2, 3, 4) = 2,
    DP: meta(64, 128, 256, 512, 1024) = 128,
    BN: meta(128, 256) = 128,
    NG: meta(1024, 4096, 16384, 65536) = 16384,
    CHUNK: meta(1, 2, 4, 8, 16, 32) = 8,
):
    W = min(WG, max(1, 1024 // DP))
    BM = 64 * W
    REGS = (240, 232, 152, 112)[W - 1]
    STAGES = min(8, (220000 - 2 * BM * DP) // (128 * BN))
    G = BN // 8
    require(D > 0, D <= DP, D % 8 == 0, M > 0, cdiv(M, G) <= NG)
    NT = cdiv(M, BN)
    DT = cdiv(D, 64)
    tiles = persistent(B, cdiv(NT, CHUNK), cdiv(Q, BM))
    A = smem(T, (BM, DP), stages=1, swizzle=128)
    C = smem(T, (BN, 64), stages=STAGES, swizzle=128)
    S = smem(f32, (BN,), stages=4)
    math = role(warpgroups=W, regs=REGS)
    copy = role(warps=1, regs=32)
    squares = role(warps=1, regs=32)
    queries = pipeline(A, producer=copy, consumer=math)
    rows_ = pipeline(C, producer=copy, consumer=math)
    sums = pipeline(S, producer=squares, consumer=math)

    with copy:
        for b, c, m in tiles:
            with queries.fill() as s:
                tma_load(A[s], q[b, m * BM, 0])
            for n in range(c * CHUNK, min(c * CHUNK + CHUNK, NT)):
                for i in range(DT):
                    with rows_.fill() as s:
                        tma_load(C[s], x[b, n * BN, i * 64])

    with squares:
        for b, c, m in tiles:
            for n in range(c * CHUNK, min(c * CHUNK + CHUNK, NT)):
                with sums.fill() as s:
                    for i in static_range(BN // 32):
                        at = i * 32 + lane()
                        inside = n * BN + at < M
                        store(S[s][at], load(xsq[b, n * BN + at], mask=inside, fill=inf))

    with math as wg:
        row = wg * 64
        for b, c, m in tiles:
            sq = wait(queries)
            for n in range(c * CHUNK, min(c * CHUNK + CHUNK, NT)):
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
                acc = fma(acc, -2.0, cols(S[ss]))
                release(sums, ss)
                least = registers(f32, 16)
                for g in static_range(8):
                    low = reduce_rows(columns(acc, g * G, G), "min")
                    rows_of = lanes(low)
                    least[g] = rows_of[0]
                    least[8 + g] = rows_of[1]
                found = fragment(f32, (64, 8))
                own = lanes(found)
                for r in static_range(2):
                    eight = registers(f32, 8)
                    for g in static_range(8):
                        eight[g] = least[8 * r + g]
                    pair = kept_half(kept_half(eight, 4, 2), 2, 1)
                    own[2 * r] = pair[0]
                    own[2 * r + 1] = pair[1]
                store(minima[b, m * BM + row, n * 8], found)
            release(queries, sq)


@cake.inline
def keep(values, first, upto, t, PER, THREADS, KP, NOBODY):
    """Replace the CTA's list by the KP least of it and of PER new values of every thread.

    Value i of a thread has the index first + i THREADS, if that is below upto; indices of the list
    are lower. The KP-th of the threads' own least values bounds the result; what is not behind it
    is gathered, and the place of each is the number of those before it.
    """
    old = load(LV[t], mask=t < KP, fill=inf)
    old_index = load(LI[t], mask=t < KP, fill=NOBODY)
    least = old
    least_index = old_index
    for i in range(PER, unroll=True):
        index = first + i * THREADS
        nearer = values[i] < least or (values[i] == least and index < least_index)
        take = nearer and index < upto
        least = select(take, values[i], least)
        least_index = select(take, index, least_index)
    store(TV[t], least)
    if t == 0:
        store(count[0], 0)
        store(last_value[0], inf)
        store(last_index[0], 0)
    cta_sync()
    if t < KP:
        store(LV[t], inf)
        store(LI[t], NOBODY)
    below = 0
    upto_me = 0
    for j in range(0, THREADS, 4):
        four = load(TV[j : j + 4])
        for i in static_range(4):
            below = below + cast(four[i] < least, i32)
            upto_me = upto_me + cast(four[i] <= least, i32)
    if below < KP and upto_me >= KP:
        before_me = atomic_exch(last_value[0], least)
        other_index = atomic_max(last_index[0], least_index)
    cta_sync()
    last = load(last_value[0])
    last_one = load(last_index[0])
    if old_index < NOBODY and (old < last or (old == last and old_index <= last_one)):
        at = atomic_add(count[0], 1)
        store(CV[at], old)
        store(CI[at], old_index)
    for i in range(PER, unroll=True):
        index = first + i * THREADS
        near = values[i] < last or (values[i] == last and index <= last_one)
        if near and index < upto:
            at = atomic_add(count[0], 1)
            store(CV[at], values[i])
            store(CI[at], index)
    cta_sync()
    n = load(count[0])
    for e in range(t, n, THREADS):
        mine = load(CV[e])
        mine_index = load(CI[e])
        place = 0
        for j in range(n):
            v = load(CV[j])
            ahead = v < mine or (v == mine and load(CI[j]) < mine_index)
            place = place + cast(ahead, i32)
        if place < KP:
            store(LV[place], mine)
            store(LI[place], mine_index)
    cta_sync()


@cake.schedule(target="sm_90a")
def merge(
    q: Tensor[T, "B", "Q", "D"],
    x: Tensor[T, "B", "M", "D"],
    minima: Tensor[f32, "B", "Q", NG],
    distances: Tensor[f32, "B", "Q", "k"],
    ids: Tensor[i32, "B", "Q", "k"],
    *,
    T: meta(bf16, f16) = bf16,
    DP: meta(64, 128, 256, 512, 1024) = 128,
    BN: meta(128, 256) = 128,
    NG: meta(1024, 4096, 16384, 65536) = 16384,
    KP: meta(16, 32, 64, 128) = 16,
    PER: meta(8, 16, 32) = 32,
    WARPS: meta(1, 2, 4, 8) = 4,
    ROWS: meta(1, 2, 4) = 4,
):
    THREADS = 32 * WARPS
    BLOCK = PER * THREADS
    G = BN // 8
    NOBODY = 1 << 30
    require(k <= KP, KP <= THREADS, D <= DP, D % 8 == 0, M > 0, k > 0, cdiv(M, G) <= NG)
    b, query = grid(B, Q)
    NB = cdiv(M, G)
    SQ = smem(f32, (DP,))
    TV = smem(f32, (THREADS,))
    LV = smem(f32, (KP,))
    LI = smem(i32, (KP,))
    CV = smem(f32, (BLOCK + THREADS,))
    CI = smem(i32, (BLOCK + THREADS,))
    DV = smem(f32, (BLOCK,))
    GI = smem(i32, (KP,))
    count = smem(i32, (1,))
    last_value = smem(f32, (1,))
    last_index = smem(i32, (1,))
    all = role(warps=WARPS)

    with all as w:
        t = w * 32 + lane()
        for d in range(t, DP, THREADS):
            store(SQ[d], cast(load(q[b, query, d], mask=d < D), f32))
        if t < KP:
            store(LV[t], inf)
            store(LI[t], NOBODY)
        values = registers(f32, PER)
        for base in range(0, NB, BLOCK):
            for i in range(PER, unroll=True):
                g = base + i * THREADS + t
                v = load(minima[b, query, g], mask=g < NB, fill=inf)
                values[i] = select(v == v, v, inf)
            keep(values, base + t, NB, t, PER, THREADS, KP, NOBODY)

        chosen = min(k, NB)
        if t < chosen:
            mine = load(LI[t])
            place = 0
            for j in range(chosen):
                place = place + cast(load(LI[j]) < mine, i32)
            store(GI[place], mine)
        cta_sync()
        if t < KP:
            store(LV[t], inf)
            store(LI[t], NOBODY)
        rows_ = min(chosen * G, M - load(GI[chosen - 1]) * G + (chosen - 1) * G)
        for base in range(0, rows_, BLOCK):
            upto = min(base + BLOCK, rows_)
            for first in range(base + w * 4 * ROWS, upto, WARPS * 4 * ROWS):
                at = registers(i32, ROWS)
                sums = registers(f32, ROWS, fill=0.0)
                for r in range(ROWS, unroll=True):
                    c = min(first + r * 4 + lane() // 8, upto - 1)
                    at[r] = load(GI[c // G]) * G + c % G
                for d in range(lane() % 8 * 8, D, 64):
                    part = load(SQ[d : d + 8])
                    for r in range(ROWS, unroll=True):
                        v = load(x[b, at[r], d], width=8)
                        for i in static_range(8):
                            e = part[i] - cast(v[i], f32)
                            sums[r] = fma(e, e, sums[r])
                for r in range(ROWS, unroll=True):
                    total = sums[r]
                    for i in static_range(3):
                        total = total + shfl_xor(total, 1 << i)
                    c = first + r * 4 + lane() // 8
                    if lane() % 8 == 0 and c < upto:
                        store(DV[c - base], select(total == total, total, inf))
            cta_sync()
            for i in range(PER, unroll=True):
                at = i * THREADS + t
                values[i] = load(DV[at], mask=base + at < upto, fill=inf)
            keep(values, base + t, rows_, t, PER, THREADS, KP, NOBODY)
        if t < k:
            c = load(LI[t])
            store(distances[b, query, t], load(LV[t]))
            store(ids[b, query, t], load(GI[c // G]) * G + c % G)
