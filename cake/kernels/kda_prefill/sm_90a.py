"""Kimi Delta Attention, prefill, for Hopper: chunks of 16 tokens, the state in registers.

A CTA walks one sequence of one head. A warp copies tiles of tokens; the warps of `prepare` turn
16 tokens each into what the recurrence needs; two math warpgroups hold 64 rows each of the state
and take a chunk at a time:

    W = b (V - S Kf^T)    U = W INV^T    O = S Qf^T + U M^T    S = S 2^total + U Kr

With G the sum of a chunk's log2 decays up to a token, Kf = k 2^G, Qf = q 2^G, Kr = k 2^(total - G),
INV = (I + L)^-1, L_ij = b_i sum_k k_ik k_jk 2^(G_i - G_j) for j < i, and M the same of q and k for
j <= i. No power is above 1, however strong the gates: L and M are made of the pairs of halves of
blocks of 16, 8, 4 and 2 tokens, and between two halves the powers are taken from the last token of
the first. INV is a forward substitution in f32, one column a lane.

Operands are f16, whose 11 bits the tolerance of long chains of correlated keys needs. Factors are
at most 1; rows of the state are kept in units of a power of two of their own that follows their
size, so that they have the range of f32.
"""

LOG2E = 1.4426950408889634
CHUNK = 16
COLUMNS = 32


@cake.inline
def moved(x, source):
    """Every register of ``x`` (16 x COLUMNS) as lane ``source`` holds it."""
    made = fragment(f32, (CHUNK, COLUMNS))
    to, given = lanes(made), lanes(x)
    for i in static_range(COLUMNS // 2):
        to[i] = shfl(given[i], source)
    return made


@cake.inline
def last_row(x):
    """Row 15 of ``x`` (16 x COLUMNS)."""
    made = col_vector(f32, COLUMNS)
    to, given = lanes(made), lanes(x)
    for i in static_range(COLUMNS // 8):
        for j in static_range(2):
            to[2 * i + j] = shfl(given[4 * i + 2 + j], 28 + lane() % 4)
    return made


@cake.inline
def row_seven(x):
    """Row 7 of ``x`` (16 x COLUMNS)."""
    made = col_vector(f32, COLUMNS)
    to, given = lanes(made), lanes(x)
    for i in static_range(COLUMNS // 8):
        for j in static_range(2):
            to[2 * i + j] = shfl(given[4 * i + j], 28 + lane() % 4)
    return made


@cake.inline
def power_below(x):
    """The power of two at or below x > 0."""
    return bitcast(bitcast(x, u32) & 0x7F800000, f32)


@cake.inline
def log_decay(x, factor, bounded, bound):
    """log2 of the decays whose logits are ``x``."""
    y = x * factor
    soft = max(x, 0.0) * LOG2E + log2(1.0 + exp2(-abs(x) * LOG2E))
    return select(bounded, bound * sigmoid(y), -(soft * factor))


@cake.inline
def add_products(kk, qk, x, y):
    """Products of the rows of ``x`` (keys) and ``y`` (queries) with those of ``x``."""
    a = cast(x, f16)
    b = b_operand(a, transposed=True)
    mma(kk, a, b)
    mma(qk, cast(y, f16), b)


@cake.inline
def merged(far, near, size):
    """``far`` for tokens in the two halves of a block of 2 * size tokens, ``near`` elsewhere."""
    i, j = row_index(CHUNK), col_index(CHUNK)
    halves = i // size == j // size + 1
    return select(halves, select(i // size % 2 == 1, far, near), near)


@cake.schedule(target="sm_90a")
def kda_prefill(
    q: Tensor[bf16, "T", "H", 128],
    k: Tensor[bf16, "T", "H", 128],
    v: Tensor[bf16, "T", "H", 128],
    g: Tensor[bf16, "T", "H", 128],
    beta: Tensor[bf16, "T", "Hb"],
    a_log: Tensor[f32, "H"],
    dt_bias: Tensor[f32, "H", 128],
    cu: Tensor[i64, "N1"],
    h0: Tensor[S, "N", "H", 128, 128],
    o: Tensor[bf16, "T", "H", 128],
    ht: Tensor[S, "N", "H", 128, 128],
    bounded: i32,
    lower_bound: f32,
    initial: i32,
    *,
    S: meta(f32, bf16) = f32,
    TILE: meta(32, 48, 64) = 48,
    STAGES: meta(1, 2) = 2,
):
    require(N1 == N + 1, Hb >= H)
    n, h = grid(N, H)
    WARPS = TILE // CHUNK
    K = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    Q = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    G = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    V = smem(bf16, (TILE, 128), stages=2, swizzle=128)
    KQ = smem(f16, (2 * TILE, 128), stages=2, swizzle=128)
    KR = smem(f16, (TILE, 128), stages=2, swizzle=128)
    INV = smem(f16, (TILE, CHUNK), stages=2, swizzle=32)
    M = smem(f16, (TILE, CHUNK), stages=2, swizzle=32)
    DECAY = smem(f32, (WARPS, 128), stages=2)
    BETA = smem(f32, (WARPS, CHUNK), stages=2)
    L = smem(f32, (WARPS, CHUNK, CHUNK))
    BIAS = smem(f32, (128,))
    E = smem(bf16, (CHUNK, 64), stages=2, swizzle=128)
    math = role(warpgroups=2, regs=160)
    prepare = role(warps=WARPS, regs=168)
    copy = role(warps=1, regs=24)
    raw = pipeline(K, Q, G, producer=copy, consumer=prepare)
    vs = pipeline(V, producer=copy, consumer=math)
    chunks = pipeline(KQ, KR, INV, M, DECAY, BETA, producer=prepare, consumer=math)

    with copy:
        first = cast(load(cu[n]), i32)
        count = cast(load(cu[n + 1]), i32) - first
        for t in range(0, count, TILE):
            with raw.fill() as s:
                tma_load(K[s], k[first + t, h, 0], axes=(0, 2))
                tma_load(Q[s], q[first + t, h, 0], axes=(0, 2))
                tma_load(G[s], g[first + t, h, 0], axes=(0, 2))
            with vs.fill() as s:
                tma_load(V[s], v[first + t, h, 0], axes=(0, 2))

    with prepare as u:
        first = cast(load(cu[n]), i32)
        count = cast(load(cu[n + 1]), i32) - first
        row = u * CHUNK
        factor = exp2(load(a_log[h]) * LOG2E)
        if u == 0:
            for i in static_range(4):
                store(BIAS[i * 32 + lane()], load(dt_bias[h, i * 32 + lane()]))
        role_sync()
        odd = lane() // 4 % 2 == 1
        for t in range(0, count, TILE):
            r = wait(raw)
            s = acquire(chunks)
            if t + row < count:
                inside = row_index(CHUNK) < count - t - row
                if lane() < CHUNK:
                    token = t + row + lane()
                    b = 0.0
                    if token < count and 0 <= first + token < T:
                        b = sigmoid(cast(load(beta[first + token, h]), f32))
                    store(BETA[s][u, lane()], b)
                unit_sync()
                ksum = row_vector(f32, CHUNK, fill=0.0, partial=True)
                qsum = row_vector(f32, CHUNK, fill=0.0, partial=True)
                for c in range(0, 128, COLUMNS):
                    x = cast(ldmatrix(K[r][row : row + CHUNK, c : c + COLUMNS]), f32)
                    ksum = ksum + reduce_rows(x * x, "sum")
                    y = cast(ldmatrix(Q[r][row : row + CHUNK, c : c + COLUMNS]), f32)
                    qsum = qsum + reduce_rows(y * y, "sum")
                knorm = rsqrt(reduce_quad(ksum, "sum") + 1e-6)
                qnorm = rsqrt(reduce_quad(qsum, "sum") + 1e-6)
                kk8 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                kk4 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                kk2 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                kk1 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                qk8 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                qk4 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                qk2 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                qk1 = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                same = row_vector(f32, CHUNK, fill=0.0, partial=True)
                for c in range(0, 128, COLUMNS):
                    x = cast(ldmatrix(G[r][row : row + CHUNK, c : c + COLUMNS]), f32)
                    x = x + cols(BIAS[c : c + COLUMNS])
                    a = log_decay(x, factor, bounded != 0, lower_bound * LOG2E)
                    a = select(inside, a, 0.0)
                    sums = scan_cols(a)
                    total = last_row(sums)
                    x = cast(ldmatrix(K[r][row : row + CHUNK, c : c + COLUMNS]), f32)
                    x = select(inside, x * knorm, 0.0)
                    y = cast(ldmatrix(Q[r][row : row + CHUNK, c : c + COLUMNS]), f32)
                    y = select(inside, y * qnorm, 0.0)
                    same = same + reduce_rows(x * y, "sum")
                    power = exp2(sums)
                    stmatrix(KQ[s][2 * row : 2 * row + CHUNK, c : c + COLUMNS], cast(x * power, f16))
                    queries = 2 * row + CHUNK
                    stmatrix(KQ[s][queries : queries + CHUNK, c : c + COLUMNS], cast(y * power, f16))
                    power = exp2(total - sums)
                    stmatrix(KR[s][row : row + CHUNK, c : c + COLUMNS], cast(x * power, f16))
                    store(DECAY[s][u, c : c + COLUMNS], exp2(total))
                    power = exp2(-abs(sums - row_seven(sums)))
                    add_products(kk8, qk8, x * power, y * power)
                    power = exp2(-abs(sums - moved(sums, 12 + lane() % 4)))
                    add_products(kk4, qk4, x * power, y * power)
                    power = exp2(-abs(sums - moved(sums, lane() // 16 * 16 + 4 + lane() % 4)))
                    add_products(kk2, qk2, x * power, y * power)
                    power = select(odd, exp2(a), 1.0)
                    add_products(kk1, qk1, x * power, y * power)
                none = fragment(f32, (CHUNK, CHUNK), fill=0.0)
                low = merged(kk8, merged(kk4, merged(kk2, merged(kk1, none, 1), 2), 4), 8)
                low = low * rows(BETA[s][u])
                store(L[u], low)
                diagonal = row_index(CHUNK) == col_index(CHUNK)
                own = select(diagonal, reduce_quad(same, "sum"), none)
                low = merged(qk8, merged(qk4, merged(qk2, merged(qk1, own, 1), 2), 4), 8)
                stmatrix(M[s][row : row + CHUNK], cast(low, f16))
                unit_sync()
                column = registers(f32, CHUNK, fill=0.0)
                for i in static_range(CHUNK):
                    e = select(lane() % CHUNK == i, 1.0, 0.0)
                    for j in static_range(0, i, 4):
                        part = load(L[u, i, j : j + 4])
                        for m in static_range(4):
                            if j + m < i:
                                e = fma(-part[m], column[j + m], e)
                    column[i] = e
                if lane() < CHUNK:
                    for i in static_range(CHUNK):
                        store(INV[s][row + i, lane()], cast(column[i], f16))
                unit_sync()
            fence_async()
            release(raw, r)
            commit(chunks, s)

    with math as wg:
        first = cast(load(cu[n]), i32)
        count = cast(load(cu[n + 1]), i32) - first
        state = fragment(f32, (64, 128), fill=0.0)
        if initial != 0:
            state = cast(load_tile(h0[n, h, wg * 64, 0], (64, 128)), f32)
        unit = row_vector(f32, 64, fill=1.0)
        for t in range(0, count, TILE):
            sv = wait(vs)
            sizes = abs(cast(ldmatrix(V[sv][:, wg * 64 : wg * 64 + 64].T), f32))
            sizes = select(col_index(TILE) < count - t, sizes, 0.0)
            best = max(reduce_rows(abs(state), "max") * unit, reduce_rows(sizes, "max"))
            least = max(unit * 2.0**-96, 2.0**-64)
            next = max(min(power_below(reduce_quad(best, "max")), 2.0**126), least)
            state = state * (unit / next)
            unit = next
            inverse = 1.0 / unit
            s = wait(chunks)
            for c in range(0, min(count - t, TILE), CHUNK):
                left = cast(state, f16)
                both = fragment(f32, (64, 2 * CHUNK))
                wgmma(both, left, KQ[s][2 * c : 2 * c + 2 * CHUNK].T, init=True)
                x = cast(ldmatrix(V[sv][c : c + CHUNK, wg * 64 : wg * 64 + 64].T), f32)
                x = select(col_index(CHUNK) < count - t - c, x * inverse, 0.0)
                wgmma_wait(0)
                w = cast((x - columns(both, 0, CHUNK)) * cols(BETA[s][c // CHUNK]), f16)
                out = columns(both, CHUNK, CHUNK)
                u = fragment(f32, (64, CHUNK))
                wgmma(u, w, INV[s][c : c + CHUNK].T, init=True)
                state = state * cols(DECAY[s][c // CHUNK])
                wgmma_wait(0)
                w = cast(u, f16)
                wgmma(out, w, M[s][c : c + CHUNK].T)
                wgmma(state, w, KR[s][c : c + CHUNK])
                wgmma_wait(1)
                result = cast(out * (unit * 0.08838834764831845), bf16)
                unit_sync()
                stmatrix(E[wg].T, result)
                unit_sync()
                row = t + c + thread() // 8
                column = thread() % 8 * 8
                part = load(E[wg][thread() // 8, column : column + 8])
                inside = row < count and 0 <= first + row < T
                store(o[first + row, h, wg * 64 + column], part, mask=inside)
                wgmma_wait(0)
            fence_async()
            release(vs, sv)
            release(chunks, s)
        store(ht[n, h, wg * 64, 0], cast(state * unit, S))
