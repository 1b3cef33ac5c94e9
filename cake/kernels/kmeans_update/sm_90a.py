"""Centroid update: per-cluster sums and counts, then means; empty clusters keep their centroid.

`accumulate`: a CTA sorts the ids of a chunk of points by counting in shared memory, then its warps
walk equal shares of the sorted list, add rows in registers, and flush a cluster's sum with one
vector reduction when the cluster changes. So a row is read once, whole, and a skewed chunk costs
no more than an even one. K beyond KP is cut into ranges along the grid. The order of the flushes
is free: sums of this variant differ in the last bits from run to run.
"""


@cake.schedule(target="sm_90a")
def clear(
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
):
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        k = block * 8 + u
        if k < K:
            for d in range(lane(), D, 32):
                store(sums[b, k, d], 0.0)
            if lane() == 0:
                store(counts[b, k], 0)


@cake.schedule(target="sm_90a")
def accumulate(
    x: Tensor[T, "B", "N", "D"],
    ids: Tensor[i32, "B", "N"],
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    *,
    T: meta(bf16, f16) = bf16,
    V: meta(2, 4, 8) = 4,
    WARPS: meta(16, 32) = 32,
    CHUNK: meta(4096, 8192, 16384) = 16384,
    KP: meta(1024, 2048, 4096) = 1024,
    ROWS: meta(4, 8) = 8,
):
    THREADS = WARPS * 32
    PER = KP // THREADS
    W = 32 * V
    require(D % V == 0, KP % THREADS == 0)
    b, part, r, piece = grid(B, cdiv(N, CHUNK), cdiv(K, KP), cdiv(D, W))
    first = part * CHUNK
    base = r * KP
    n = min(CHUNK, N - first)
    cursor = smem(i32, (KP,))
    share = smem(i32, (WARPS,))
    entries = smem(u32, (CHUNK,))
    all = role(warps=WARPS)

    with all as u:
        t = u * 32 + lane()
        for i in static_range(PER):
            store(cursor[i * THREADS + t], 0)
        cta_sync()
        for i in range(t, n, THREADS):
            k = load(ids[b, first + i]) - base
            if k >= 0 and k < KP:
                reduce_add(cursor[k], 1)
        cta_sync()
        mine = registers(i32, PER)
        own = 0
        for i in static_range(PER):
            mine[i] = load(cursor[t * PER + i])
            own = own + mine[i]
        upto = warp_scan(own)
        if lane() == 31:
            store(share[u], upto)
        cta_sync()
        before = 0
        total = 0
        for w in static_range(WARPS):
            s = load(share[w])
            before = before + select(u > w, s, 0)
            total = total + s
        at = before + upto - own
        for i in static_range(PER):
            store(cursor[t * PER + i], at)
            if piece == 0 and mine[i] > 0:
                reduce_add(counts[b, base + t * PER + i], mine[i])
            at = at + mine[i]
        cta_sync()
        for i in range(t, n, THREADS):
            k = load(ids[b, first + i]) - base
            if k >= 0 and k < KP:
                place = atomic_add(cursor[k], 1)
                store(entries[place], cast(k, u32) * 65536 + cast(i, u32))
        cta_sync()

        column = piece * W + lane() * V
        inside = column < D
        length = cdiv(cdiv(total, WARPS), ROWS) * ROWS
        low = min(u * length, total)
        high = min(low + length, total)
        acc = registers(f32, V, fill=0.0)
        rows = registers(f32, ROWS * V)
        keys = registers(i32, ROWS)
        current = -1
        for j in range(low, high, ROWS):
            for i in static_range(ROWS):
                e = load(entries[min(j + i, high - 1)])
                keys[i] = cast(e >> 16, i32)
                row = load(x[b, first + cast(e & 65535, i32), column], width=V, mask=inside)
                for q in static_range(V):
                    rows[i * V + q] = cast(row[q], f32)
            for i in static_range(ROWS):
                if j + i < high:
                    if keys[i] != current:
                        if current >= 0 and inside:
                            reduce_add(sums[b, base + current, column], acc)
                        current = keys[i]
                        for q in static_range(V):
                            acc[q] = rows[i * V + q]
                    else:
                        for q in static_range(V):
                            acc[q] = acc[q] + rows[i * V + q]
        if current >= 0 and inside:
            reduce_add(sums[b, base + current, column], acc)


@cake.schedule(target="sm_90a")
def finish(
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    c_old: Tensor[T, "B", "K", "D"],
    c_new: Tensor[T, "B", "K", "D"],
    *,
    T: meta(bf16, f16) = bf16,
):
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        k = block * 8 + u
        if k < K:
            count = load(counts[b, k])
            divisor = cast(max(count, 1), f32)
            for d in range(lane(), D, 32):
                mean = load(sums[b, k, d]) / divisor
                old = cast(load(c_old[b, k, d]), f32)
                store(c_new[b, k, d], cast(select(count > 0, mean, old), T))
