"""Flash attention forward for Hopper: o = softmax(q k^T / sqrt(D)) v in one pass over the keys.

A CTA holds 128 queries of one head, 64 in each of two math warpgroups, and walks the keys from the
last visible tile to the first: tiles cut by the diagonal or by the end of the keys come first and
are the only ones masked. Scores never leave registers: they are the accumulator of one product and,
rounded, operand A of the next.

A warpgroup issues the scores of a tile together with the output of the tile before it, and computes
powers while the second product runs. The two warpgroups take turns at issuing, so that one computes
powers while the other multiplies. Of HEADS neighbouring heads, whose keys and values fit in L2, the
tiles with the most visible keys start first, so that the last CTAs to start are short.

The wait for the next values stands before that for the products on purpose: it ends a basic block,
and without one ptxas moves the wait for the products above the powers.
"""


@cake.inline
def reference(top):
    return select(top == -inf, 0.0, top)


@cake.inline
def row_maximum(s, quarter):
    """Four chains of maxima: a single one would take as long as all its latencies."""
    one = reduce_rows(columns(s, 0, quarter), "max")
    two = reduce_rows(columns(s, quarter, quarter), "max")
    three = reduce_rows(columns(s, 2 * quarter, quarter), "max")
    four = reduce_rows(columns(s, 3 * quarter, quarter), "max")
    return reduce_quad(max(max(one, two), max(three, four)), "max")


@cake.schedule(target="sm_90a")
def attention(
    q: Tensor[T, "B", "H", "Lq", "D"],
    k: Tensor[T, "B", "Hkv", "Lk", "D"],
    v: Tensor[T, "B", "Hkv", "Lk", "D"],
    o: Tensor[T, "B", "H", "Lq", "D"],
    causal: i32,
    *,
    T: meta(bf16, f16) = bf16,
    DP: meta(64, 128) = 128,
    BN: meta(64, 96, 128, 160, 192) = 128,
    STAGES: meta(2, 3) = 2,
    HEADS: meta(1, 2, 4, 8, 16) = 8,
):
    LOG2E = 1.4426950408889634
    require(D <= DP, D % 8 == 0, H % Hkv == 0)
    MT = cdiv(Lq, 128)
    (place,) = grid(B * H * MT)
    section = place // max(HEADS * MT, 1) * HEADS
    rank = place - section * MT
    width = max(min(HEADS, B * H - section), 1)
    head = section + rank % width
    b = head // max(H, 1)
    h = head % max(H, 1)
    group = h // max(H // Hkv, 1)
    first = (MT - 1 - rank // width) * 128
    beyond = select(causal != 0, Lk - Lq + 1, Lk)
    KT = cdiv(max(min(Lk, first + 127 + beyond), 0), BN)
    Q = smem(T, (128, DP), stages=1, swizzle=128)
    K = smem(T, (BN, DP), stages=STAGES, swizzle=128)
    V = smem(T, (BN, DP), stages=STAGES, swizzle=128)
    E = smem(T, (64, DP), stages=2, swizzle=128)
    math = role(warpgroups=2, regs=232)
    load_ = role(warps=1, regs=40)
    qs = pipeline(Q, producer=load_, consumer=math)
    ks = pipeline(K, producer=load_, consumer=math)
    vs = pipeline(V, producer=load_, consumer=math)
    turn = named_barrier(threads=256, slots=2)

    with load_:
        if KT > 0:
            with qs.fill() as s:
                tma_load(Q[s], q[b, h, first, 0])
            with ks.fill() as s:
                tma_load(K[s], k[b, group, (KT - 1) * BN, 0])
            for j in range(1, KT):
                with ks.fill() as s:
                    tma_load(K[s], k[b, group, (KT - 1 - j) * BN, 0])
                with vs.fill() as s:
                    tma_load(V[s], v[b, group, (KT - j) * BN, 0])
            with vs.fill() as s:
                tma_load(V[s], v[b, group, 0, 0])

    with math as wg:
        row = first + wg * 64
        factor = rsqrt(cast(D, f32)) * LOG2E
        visible = min(row_index(64) + (row + beyond), Lk)
        out = fragment(f32, (64, DP), fill=0.0)
        total = row_vector(f32, 64, fill=0.0, partial=True)
        if wg == 1:
            named_arrive(turn, 0)
        if KT > 0:
            sq = wait(qs)
            sk = wait(ks)
            s = fragment(f32, (64, BN))
            wgmma(s, Q[sq][wg * 64 : wg * 64 + 64], K[sk].T, init=True)
            wgmma_wait(0)
            release(ks, sk)
            s = select(col_index(BN) + (KT - 1) * BN < visible, s, -inf)
            top = row_maximum(s, BN // 4)
            s = exp2(fma(s, factor, -(reference(top) * factor)))
            total = reduce_rows(s, "sum")
            p = cast(s, T)
            scale = row_vector(f32, 64, fill=1.0)
            sv = wait(vs)
            for j in range(1, KT):
                n = (KT - 1 - j) * BN
                sk = wait(ks)
                t = fragment(f32, (64, BN))
                named_sync(turn, wg)
                wgmma(t, Q[sq][wg * 64 : wg * 64 + 64], K[sk].T, init=True)
                out = out * scale
                wgmma(out, p, V[sv])
                named_arrive(turn, 1 - wg)
                wgmma_wait(1)
                release(ks, sk)
                if n + BN > min(row + beyond, Lk):
                    t = select(col_index(BN) + n < visible, t, -inf)
                best = max(top, row_maximum(t, BN // 4))
                at = reference(best)
                scale = exp2((top - at) * factor)
                top = best
                t = exp2(fma(t, factor, -(at * factor)))
                total = total * scale + reduce_rows(t, "sum")
                next = wait(vs)
                wgmma_wait(0)
                release(vs, sv)
                sv = next
                p = cast(t, T)
            release(qs, sq)
            out = out * scale
            wgmma(out, p, V[sv])
            wgmma_wait(0)
            release(vs, sv)
        norm = reduce_quad(total, "sum")
        result = cast(out * select(norm == 0.0, 0.0, 1.0 / norm), T)
        stmatrix(E[wg], result)
        fence_async()
        unit_sync()
        tma_store(o[b, h, row, 0], E[wg])
        tma_store_commit()
        tma_store_wait(0)
