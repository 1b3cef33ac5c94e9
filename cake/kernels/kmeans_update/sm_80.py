"""Centroid update: per-cluster sums and counts, then means; empty clusters keep their centroid.

`accumulate`: a CTA sorts the ids of a chunk of points by counting in shared memory, then its warps
walk equal shares of the sorted list, add rows in registers, and add a cluster's sum to memory when
the cluster changes (with vector reductions from sm_90 on). So a row is read once, whole, and a
skewed chunk costs no more than an even one. The order of the additions to memory is free: sums of
this variant differ in the last bits from run to run.

K beyond KP, and D beyond what a warp loads at once, are cut into ranges along the grid. With PDL
(sm_90 and later) the sorting overlaps with `clear`, and no launch waits for the one before to end.
"""

END = 65535  # cluster of the entries that fill the sorted list up to whole blocks of rows


@cake.inline
def cluster_of(entry):
    return cast(entry >> 16, i32)


@cake.schedule(target="sm_80")
def clear(
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    *,
    V: meta(1, 2, 4, 8) = 4,
    PDL: meta(False, True) = False,
):
    require(D % V == 0)
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        if PDL:
            pdl_launch()
        k = block * 8 + u
        if k < K:
            zeros = registers(f32, V, fill=0.0)
            for d in range(lane() * V, D, 32 * V):
                store(sums[b, k, d], zeros)
            if lane() == 0:
                store(counts[b, k], 0)


@cake.schedule(target="sm_80")
def accumulate(
    x: Tensor[T, "B", "N", "D"],
    ids: Tensor[i32, "B", "N"],
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    *,
    T: meta(bf16, f16, f32) = bf16,
    V: meta(1, 2, 4, 8) = 4,
    WARPS: meta(16, 32) = 32,
    CHUNK: meta(4096, 8192, 16384) = 16384,
    KP: meta(1024, 2048, 4096) = 1024,
    ROWS: meta(4, 8, 16) = 8,
    PDL: meta(False, True) = False,
):
    THREADS = WARPS * 32
    GROUPS = CHUNK // THREADS
    OWN = KP // THREADS
    W = 32 * V
    # Rows in flight take at most half of the registers.
    BYTES = 4 if f32 == T else 2
    require(D % V == 0, WARPS * ROWS * V * BYTES <= 4096)
    launch(pdl=PDL)
    b, part, r, piece = grid(B, cdiv(N, CHUNK), cdiv(K, KP), cdiv(D, W))
    first = part * CHUNK
    base = r * KP
    n = min(CHUNK, N - first)
    cursor = smem(i32, (KP,))
    totals = smem(i32, (WARPS,))
    entries = smem(u32, (CHUNK + ROWS,))
    all = role(warps=WARPS)

    with all as u:
        t = u * 32 + lane()
        for i in static_range(OWN):
            store(cursor[i * THREADS + t], 0)
        keys = registers(i32, GROUPS)
        for g in static_range(GROUPS):
            i = g * THREADS + t
            k = load(ids[b, first + i], mask=i < n, fill=-1) - base
            keys[g] = select(k < KP, k, -1)
        cta_sync()
        for g in range(GROUPS, unroll=True):
            reduce_add(cursor[max(keys[g], 0)], 1, mask=keys[g] >= 0)
        if PDL:
            pdl_wait()
        cta_sync()

        # Turn counts into places in the sorted list.
        mine = registers(i32, OWN)
        own = 0
        for i in static_range(OWN):
            mine[i] = load(cursor[t * OWN + i])
            own = own + mine[i]
        upto = warp_scan(own)
        if lane() == 31:
            store(totals[u], upto)
        cta_sync()
        at = upto - own
        total = 0
        for w in static_range(WARPS):
            s = load(totals[w])
            at = at + select(w < u, s, 0)
            total = total + s
        for i in static_range(OWN):
            store(cursor[t * OWN + i], at)
            if piece == 0 and mine[i] > 0:
                reduce_add(counts[b, base + t * OWN + i], mine[i])
            at = at + mine[i]
        if t < ROWS:
            store(entries[total + t], END << 16)
        cta_sync()
        for g in range(GROUPS, unroll=True):
            k = keys[g]
            if k >= 0:
                place = atomic_add(cursor[k], 1)
                store(entries[place], cast(k << 16 | g * THREADS + t, u32))
        cta_sync()

        column = piece * W + lane() * V
        inside = column < D
        blocks = cdiv(total, ROWS)
        length = cdiv(blocks, WARPS) * ROWS
        low = min(u * length, blocks * ROWS)
        high = min(low + length, blocks * ROWS)
        acc = registers(f32, V, fill=0.0)
        rows = registers(f32, ROWS * V)
        current = cluster_of(load(entries[low]))
        if PDL:
            pdl_launch()
        for j in range(low, high, ROWS):
            block = load(entries[j : j + ROWS])
            for i in range(ROWS, unroll=True):
                point = cast(block[i] & 65535, i32)
                row = load(x[b, first + point, column], width=V, mask=inside)
                for q in static_range(V):
                    rows[i * V + q] = cast(row[q], f32)
            for s in static_range(0, ROWS, 4):
                if cluster_of(block[s + 3]) == current:
                    for i in range(s, s + 4, unroll=True):
                        for q in range(V, unroll=True):
                            acc[q] = acc[q] + rows[i * V + q]
                else:
                    for i in range(s, s + 4, unroll=True):
                        k = cluster_of(block[i])
                        if k != current:
                            reduce_add(sums[b, base + current, column], acc, mask=inside)
                            current = k
                            for q in range(V, unroll=True):
                                acc[q] = 0.0
                        for q in range(V, unroll=True):
                            acc[q] = acc[q] + rows[i * V + q]
        if current != END:
            reduce_add(sums[b, base + current, column], acc, mask=inside)


@cake.schedule(target="sm_80")
def finish(
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    c_old: Tensor[T, "B", "K", "D"],
    c_new: Tensor[T, "B", "K", "D"],
    *,
    T: meta(bf16, f16, f32) = bf16,
    V: meta(1, 2, 4, 8) = 4,
    PDL: meta(False, True) = False,
):
    require(D % V == 0)
    launch(pdl=PDL)
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        if PDL:
            pdl_wait()
        k = block * 8 + u
        if k < K:
            count = load(counts[b, k])
            for d in range(lane() * V, D, 32 * V):
                total = load(sums[b, k, d], width=V)
                old = load(c_old[b, k, d], width=V, mask=count == 0)
                new = registers(f32, V)
                for q in static_range(V):
                    mean = total[q] / cast(max(count, 1), f32)
                    new[q] = select(count > 0, mean, cast(old[q], f32))
                if V == 1:
                    store(c_new[b, k, d], cast(new[0], T))
                else:
                    store(c_new[b, k, d], cast(new, T))
