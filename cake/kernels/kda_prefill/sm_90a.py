"""Kimi Delta Attention, prefill, for Hopper: chunks of 16 tokens, the state in registers.

A CTA walks one sequence of one head, with all of the state or, for few heads, one of PARTS = 2
halves of its rows, which do not depend on one another. A warp copies tiles of tokens; the warps of
`prepare` turn 16 tokens each into what the recurrence needs; math warpgroups hold 64 rows of the
state each and take a chunk at a time:

    W = b (V - S Kf^T)    U = W INV^T    O = S Qf^T + U M^T    S = S 2^total + U Kr

With G the sum of the chunk's log2 decays up to a token, Kf = k 2^G, Qf = q 2^G,
Kr = k 2^(total - G), INV = (I + L)^-1, L_ij = b_i sum_k k_ik k_jk 2^(G_i - G_j) for j < i, and M
the same of q and k for j <= i. INV is a forward substitution in f32, a column a lane.

Exponents are products of matrices of 0 and 1 with the decays, so that no large sums cancel. If the
bound of the gates lets 2^(G - G_7) and its inverse be numbers, L and M are one product each. Else
they are made of pairs of halves of blocks of 16, 8, 4 and 2 tokens: taken from the last token of
the first half, no power is above 1, however strong the gates.

Operands are f16, whose 11 bits long chains of correlated keys need. Factors are at most 1; rows of
the state and of V are in units of a power of two of their own, so that they have the range of f32.
Only the factors of L and M with a bound, which may be as large as 2^64, are bf16.
"""

LOG2E = 1.4426950408889634
CHUNK = 16
SAFE_BOUND = -5.5
"""8 decays of 2^(-5.5 log2(e)) and their inverse, squared, are finite numbers."""


@cake.inline
def clamped(i, extent):
    """An element of ``cu`` as i32; whatever it holds, no access leaves the tensors."""
    return cast(min(max(i, 0), cast(extent, i64)), i32)


@cake.inline
def power_below(x):
    """The power of two at or below x > 0."""
    return bitcast(bitcast(x, u32) & 0x7F800000, f32)


@cake.inline
def inverse_power(x):
    """1 / x of a power of two: its exponent the other way round."""
    return bitcast(0x7F000000 - bitcast(x, u32), f32)


@cake.inline
def log2_decay(x, bounded, bound, factor):
    """Log2 of decays from logits times log2(e), and times ``factor`` if they are bounded."""
    a = x
    if bounded:
        a = rcp(1.0 + exp2(-x)) * bound
    else:
        a = (max(x, 0.0) + log2(1.0 + exp2(-abs(x)))) * -factor
    return a


@cake.inline
def masked(x, rest):
    """``x`` with zeros from row ``rest`` on; whole chunks pay nothing."""
    made = x
    if rest < CHUNK:
        made = select(row_index(CHUNK) < rest, x, 0.0)
    return made


@cake.inline
def rounded(a):
    """Log decays as a right operand."""
    return b_operand(cast(a, bf16))


@cake.inline
def remainder(a):
    """What ``rounded`` leaves of log decays."""
    return b_operand(cast(a - cast(cast(a, bf16), f32), bf16))


@cake.inline
def chosen(condition, sign=1.0):
    """A matrix over the tokens of a chunk, of ``sign`` and 0, as an operand."""
    none = fragment(f32, (CHUNK, CHUNK), fill=0.0)
    return cast(select(condition, sign, none), bf16)


@cake.inline
def within_half(i, j, size):
    """Whether token j lies between token i and the middle of its block of 2 * size tokens."""
    second = i // size % 2 == 1
    first = select(second, i // size * size, i + 1)
    end = select(second, i + 1, i // size * size + size)
    return first <= j and j < end


@cake.inline
def product(matrix, high, low, width=16):
    """The sums of log decays (high + low, 16 x 16) that the rows of ``matrix`` choose."""
    made = fragment(f32, (CHUNK, width), fill=0.0)
    mma(made, matrix, high)
    mma(made, matrix, low)
    return made


@cake.inline
def row_of_half(x, half, width=16):
    """A row of ``x`` (16 x 16), whose rows 0 to 7 are equal, and 8 to 15."""
    made = col_vector(f32, width)
    to, given = lanes(made), lanes(x)
    for i in static_range(width // 8):
        for j in static_range(2):
            to[2 * i + j] = given[4 * i + 2 * half + j]
    return made


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


@cake.inline
def inverse_column(matrices, n):
    """Column ``lane() % 16`` of (I + L)^-1 for matrix ``n``, which is strictly lower."""
    column = registers(f32, CHUNK, fill=0.0)
    for i in static_range(CHUNK):
        e = select(lane() % CHUNK == i, 1.0, 0.0)
        for j in static_range(0, i, 4):
            four = load(matrices[n, i, j : j + 4])
            for m in static_range(4):
                if j + m < i:
                    e = fma(-four[m], column[j + m], e)
        column[i] = e
    return column


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
    TILE: meta(32, 48, 64) = 64,
    STAGES: meta(1, 2) = 2,
    PARTS: meta(1, 2) = 1,
):
    require(N1 == N + 1, Hb >= H)
    n, h, part = grid(N, H, PARTS)
    WARPS = TILE // CHUNK
    WIDTH = 128 // PARTS
    K = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    Q = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    G = smem(bf16, (TILE, 128), stages=STAGES, swizzle=128)
    V = smem(bf16, (TILE, WIDTH), stages=1 if TILE * STAGES == 128 else 2, swizzle=128)
    KQ = smem(f16, (2 * TILE, 128), stages=2, swizzle=128)
    KR = smem(f16, (TILE, 128), stages=2, swizzle=128)
    INV = smem(f16, (TILE, CHUNK), stages=2, swizzle=32)
    M = smem(f16, (TILE, CHUNK), stages=2, swizzle=32)
    DECAY = smem(f32, (WARPS, 128), stages=2)
    BETA = smem(f32, (WARPS, CHUNK), stages=2)
    L = smem(f32, (PARTS * WARPS, CHUNK, CHUNK))
    if PARTS == 2:
        SQUARES = smem(f32, (PARTS * WARPS, 2, CHUNK))
    BIAS = smem(f32, (128,))
    math = role(warpgroups=2 // PARTS, regs=144)
    prepare = role(warps=PARTS * WARPS, regs=200 if PARTS == 1 else 168)
    copy = role(warps=1, regs=24)
    raw = pipeline(K, Q, G, producer=copy, consumer=prepare)
    vs = pipeline(V, producer=copy, consumer=math)
    chunks = pipeline(KQ, KR, INV, M, DECAY, BETA, producer=prepare, consumer=math)

    with copy:
        first = clamped(load(cu[n]), T)
        count = clamped(load(cu[n + 1]), T) - first
        for t in range(0, count, TILE):
            with raw.fill() as s:
                tma_load(K[s], k[first + t, h, 0], axes=(0, 2))
                tma_load(Q[s], q[first + t, h, 0], axes=(0, 2))
                tma_load(G[s], g[first + t, h, 0], axes=(0, 2))
            with vs.fill() as s:
                tma_load(V[s], v[first + t, h, part * WIDTH], axes=(0, 2))

    with prepare as u:
        first = clamped(load(cu[n]), T)
        count = clamped(load(cu[n + 1]), T) - first
        m, base = u // PARTS, u % PARTS * WIDTH
        row = m * CHUNK
        kf, qf = 2 * row, 2 * row + CHUNK
        factor = exp2(load(a_log[h]) * LOG2E)
        bound = lower_bound * LOG2E
        scale = select(bounded != 0, factor * LOG2E, LOG2E)
        if u == 0:
            for i in range(lane(), 128, 32):
                store(BIAS[i], load(dt_bias[h, i]) * scale)
        role_sync()
        other = u + 1 - u % 2 * 2
        tight = bounded != 0 and lower_bound >= SAFE_BOUND
        later, earlier = row_index(CHUNK), col_index(CHUNK)
        same_half = chosen(later // 8 == earlier // 8)
        from_middle = chosen(within_half(later, earlier, 8), select(later < 8, -1.0, 1.0))
        for t in range(0, count, TILE):
            r = wait(raw)
            s = acquire(chunks)
            rest = count - t - row
            if u % PARTS == 0 and lane() < CHUNK:
                token = first + t + row + lane()
                b = 0.0
                if lane() < rest and 0 <= token < T:
                    b = sigmoid(cast(load(beta[token, h]), f32))
                store(BETA[s][m, lane()], b)
            ksum = fragment(f32, (CHUNK, 32), fill=0.0)
            qsum = fragment(f32, (CHUNK, 32), fill=0.0)
            for c in range(base, base + WIDTH, 32):
                x = cast(ldmatrix(K[r][row : row + CHUNK, c : c + 32]), f32)
                ksum = fma(x, x, ksum)
                y = cast(ldmatrix(Q[r][row : row + CHUNK, c : c + 32]), f32)
                qsum = fma(y, y, qsum)
            knorm = reduce_quad(reduce_rows(ksum, "sum"), "sum")
            qnorm = reduce_quad(reduce_rows(qsum, "sum"), "sum")
            if PARTS == 2:
                store(SQUARES[u, 0], knorm)
                store(SQUARES[u, 1], qnorm)
                role_sync()
                knorm = knorm + rows(SQUARES[other, 0])
                qnorm = qnorm + rows(SQUARES[other, 1])
            else:
                unit_sync()
            knorm, qnorm = rsqrt(knorm + 1e-6), rsqrt(qnorm + 1e-6)
            kk = fragment(f32, (CHUNK, CHUNK), fill=0.0)
            qk = fragment(f32, (CHUNK, CHUNK), fill=0.0)
            if tight:
                for start in range(base, base + WIDTH, 64):
                    # All is read before anything is written, so that blocks of columns overlap.
                    keys = ldmatrix(K[r][row : row + CHUNK, start : start + 64])
                    queries = ldmatrix(Q[r][row : row + CHUNK, start : start + 64])
                    logits = cast(ldmatrix(G[r][row : row + CHUNK, start : start + 64]), f32)
                    logits = fma(logits, scale, cols(BIAS[start : start + 64]))
                    a = masked(rcp(1.0 + exp2(-logits)) * bound, rest)
                    top = cast(a, bf16)
                    small = cast(a - cast(top, f32), bf16)
                    for i in static_range(0, 64, 32):
                        c = start + i
                        high, low = b_operand(columns(top, i, 32)), b_operand(columns(small, i, 32))
                        halves = product(same_half, high, low, 32)
                        begin = exp2(row_of_half(halves, 0, 32))
                        rise = exp2(row_of_half(halves, 1, 32))
                        store(DECAY[s][m, c : c + 32], begin * rise)
                        e = product(from_middle, high, low, 32)
                        power = exp2(e)
                        x = masked(cast(columns(keys, i, 32), f32) * knorm, rest)
                        y = masked(cast(columns(queries, i, 32), f32) * qnorm, rest)
                        x_k, x_q, x_r = x * power, y * power, x * exp2(-e)
                        right = b_operand(cast(x_r, bf16), transposed=True)
                        mma(kk, cast(x_k, bf16), right)
                        mma(qk, cast(x_q, bf16), right)
                        stmatrix(KQ[s][kf : kf + CHUNK, c : c + 32], cast(x_k * begin, f16))
                        stmatrix(KQ[s][qf : qf + CHUNK, c : c + 32], cast(x_q * begin, f16))
                        stmatrix(KR[s][row : row + CHUNK, c : c + 32], cast(x_r * rise, f16))
                kk = select(earlier < later, kk, 0.0)
                qk = select(earlier <= later, qk, 0.0)
            else:
                kk8, kk4, kk2, kk1 = kk, kk, kk, kk
                qk8, qk4, qk2, qk1 = kk, kk, kk, kk
                own = row_vector(f32, CHUNK, fill=0.0, partial=True)
                for c in range(base, base + WIDTH, 16):
                    x = cast(ldmatrix(G[r][row : row + CHUNK, c : c + 16]), f32)
                    x = fma(x, scale, cols(BIAS[c : c + 16]))
                    a = masked(log2_decay(x, bounded != 0, bound, factor), rest)
                    high, low = rounded(a), remainder(a)
                    x = cast(ldmatrix(K[r][row : row + CHUNK, c : c + 16]), f32)
                    x = masked(x * knorm, rest)
                    y = cast(ldmatrix(Q[r][row : row + CHUNK, c : c + 16]), f32)
                    y = masked(y * qnorm, rest)
                    own = own + reduce_rows(x * y, "sum")
                    power = exp2(-abs(product(from_middle, high, low)))
                    add_products(kk8, qk8, x * power, y * power)
                    power = exp2(product(chosen(within_half(later, earlier, 4)), high, low))
                    add_products(kk4, qk4, x * power, y * power)
                    power = exp2(product(chosen(within_half(later, earlier, 2)), high, low))
                    add_products(kk2, qk2, x * power, y * power)
                    power = exp2(product(chosen(within_half(later, earlier, 1)), high, low))
                    add_products(kk1, qk1, x * power, y * power)
                    before = product(chosen(earlier <= later), high, low)
                    power = exp2(before)
                    stmatrix(KQ[s][kf : kf + CHUNK, c : c + 16], cast(x * power, f16))
                    stmatrix(KQ[s][qf : qf + CHUNK, c : c + 16], cast(y * power, f16))
                    after = product(chosen(earlier > later), high, low)
                    stmatrix(KR[s][row : row + CHUNK, c : c + 16], cast(x * exp2(after), f16))
                    whole = before + after
                    store(DECAY[s][m, c : c + 16], exp2(row_of_half(whole, 0)))
                qk = select(earlier == later, reduce_quad(own, "sum"), qk)
                kk = merged(kk8, merged(kk4, merged(kk2, merged(kk1, kk, 1), 2), 4), 8)
                qk = merged(qk8, merged(qk4, merged(qk2, merged(qk1, qk, 1), 2), 4), 8)
            if PARTS == 2:
                # The even warp of a chunk goes on with the keys' products, the odd with the others.
                store(L[u], select(u % 2 == 0, qk, kk))
                role_sync()
                theirs = load_tile(L[other])
                kk, qk = kk + theirs, qk + theirs
                role_sync()
            if u % PARTS == PARTS - 1:
                stmatrix(M[s][row : row + CHUNK], cast(qk, f16))
            if u % PARTS == 0:
                store(L[u], kk * rows(BETA[s][m]))
                unit_sync()
                column = inverse_column(L, u)
                if lane() < CHUNK:
                    for i in static_range(CHUNK):
                        store(INV[s][row + i, lane()], cast(column[i], f16))
                unit_sync()
            fence_async()
            release(raw, r)
            commit(chunks, s)

    with math as wg:
        first = clamped(load(cu[n]), T)
        count = clamped(load(cu[n + 1]), T) - first
        left = part * WIDTH + wg * 64
        state = fragment(f32, (64, 128), fill=0.0)
        if initial != 0:
            state = cast(load_tile(h0[n, h, left, 0], (64, 128), clip=False), f32)
        unit = row_vector(f32, 64, fill=1.0)
        for t in range(0, count, TILE):
            sv = wait(vs)
            sizes = abs(cast(ldmatrix(V[sv][:, wg * 64 : wg * 64 + 64].T), f32))
            sizes = select(col_index(TILE) < count - t, sizes, 0.0)
            best = max(reduce_rows(abs(state), "max") * unit, reduce_rows(sizes, "max"))
            least = max(unit * 2.0**-96, 2.0**-64)
            next = max(min(power_below(reduce_quad(best, "max")), 2.0**126), least)
            inverse = inverse_power(next)
            state = state * (unit * inverse)
            unit = next
            s = wait(chunks)
            for c in range(0, min(count - t, TILE), CHUNK):
                a = cast(state, f16)
                both = fragment(f32, (64, 2 * CHUNK))
                wgmma(both, a, KQ[s][2 * c : 2 * c + 2 * CHUNK].T, init=True)
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
                # The values of the chunk have been read: outputs turn over in their place.
                result = cast(out * (unit * 0.08838834764831845), bf16)
                unit_sync()
                stmatrix(V[sv][c : c + CHUNK, wg * 64 : wg * 64 + 64].T, result)
                unit_sync()
                row, column = thread() // 8, thread() % 8 * 8
                token = first + t + c + row
                values = load(V[sv][c + row, wg * 64 + column : wg * 64 + column + 8])
                inside = t + c + row < count and 0 <= token < T
                store(o[token, h, left + column], values, mask=inside)
                wgmma_wait(0)
            fence_async()
            release(vs, sv)
            release(chunks, s)
        store(ht[n, h, left, 0], cast(state * unit, S), clip=False)
