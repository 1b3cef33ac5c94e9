"""Centroid update whose sums are equal bit for bit from run to run.

`accumulate`: one of the PARTS CTAs of a batch sorts the ids of its points by counting, stably: each
warp ranks a run of neighbouring points by ballots, and a scan over clusters and warps turns ranks
into places. Then the warps walk equal shares of the sorted list, add rows in registers, and store a
partial sum when the cluster changes. Where a share ends inside a cluster, the warp in whose share
the cluster begins adds what the following warps have of it, in their order. `reduce` adds the
partial sums of the CTAs in their order, divides, and keeps the centroids of empty clusters.

So each sum has one order of additions whatever the timing, and a skewed batch costs no more than an
even one. K beyond KP, and D beyond what a warp loads at once, are cut into ranges along the grid.
"""

END = 65535  # cluster of the entries that fill the sorted list up to whole blocks of rows


@cake.inline
def cluster_of(entry):
    return cast(entry >> 16, i32)


@cake.schedule(target="sm_90a")
def accumulate(
    x: Tensor[T, "B", "N", "D"],
    ids: Tensor[i32, "B", "N"],
    partial: Tensor[f32, "B", PARTS, "K", "D"],
    sizes: Tensor[i32, "B", PARTS, "K"],
    *,
    T: meta(bf16, f16, f32) = bf16,
    V: meta(1, 2, 4, 8) = 4,
    PARTS: meta(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) = 4,
    WARPS: meta(16, 32) = 32,
    POINTS: meta(4096, 8192, 16384) = 16384,
    KP: meta(512, 1024, 2048) = 1024,
    ROWS: meta(4, 8, 16) = 8,
):
    THREADS = WARPS * 32
    GROUPS = POINTS // THREADS
    OWN = KP // THREADS
    W = 32 * V
    require(N <= PARTS * POINTS, D % V == 0, KP % THREADS == 0)
    # Limits of shared memory, and of registers: rows in flight take at most half of them.
    BYTES = 4 if f32 == T else 2
    require(WARPS * KP <= 32768, WARPS * ROWS * V * BYTES <= 4096)
    b, part, r, piece = grid(B, PARTS, cdiv(K, KP), cdiv(D, W))
    share = cdiv(N, PARTS)
    first = min(part * share, N)
    n = min(share, N - first)
    groups = cdiv(n, THREADS)
    base = r * KP
    places = smem(i32, (WARPS, KP))
    totals = smem(i32, (WARPS,))
    entries = smem(u32, (POINTS + ROWS,))
    heads = smem(f32, (WARPS, 32, V))
    all = role(warps=WARPS)

    with all as u:
        t = u * 32 + lane()
        below = (cast(1, u32) << cast(lane(), u32)) - 1
        column = piece * W + lane() * V
        inside = column < D

        # Rank each point among those of its cluster in this warp's run of `groups` * 32.
        ranks = registers(i32, GROUPS)
        for g in static_range(GROUPS):
            i = (u * groups + g) * 32 + lane()
            k = load(ids[b, first + i], mask=g < groups and i < n, fill=-1) - base
            ranks[g] = select(k < KP, k, -1)
        for i in range(KP // 32):
            store(places[u, i * 32 + lane()], 0)
        unit_sync()
        for g in range(GROUPS, unroll=True):
            if g < groups:
                k = ranks[g]
                same = ballot(k >= 0)
                for bit in range(log2_exact(KP), unroll=True):
                    one = (k >> bit & 1) == 1
                    ones = ballot(one)
                    same = same & select(one, ones, ones ^ 0xFFFFFFFF)
                earlier = load(places[u, max(k, 0)])
                unit_sync()
                if k >= 0 and (same & below) == 0:
                    store(places[u, k], earlier + popc(same))
                unit_sync()
                ranks[g] = select(k >= 0, k << 16 | earlier + popc(same & below), -1)
        cta_sync()

        # Turn the counts of the warps into places in the sorted list, cluster by cluster.
        own = 0
        for i in range(OWN * WARPS):
            own = own + load(places[i % WARPS, t * OWN + i // WARPS])
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
            k = base + t * OWN + i
            begin = at
            for w in range(WARPS):
                s = load(places[w, t * OWN + i])
                store(places[w, t * OWN + i], at)
                at = at + s
            store(sizes[b, part, k], at - begin, mask=piece == 0 and k < K)
        if t < ROWS:
            store(entries[total + t], END << 16)
        cta_sync()
        for g in range(GROUPS, unroll=True):
            k = ranks[g] >> 16
            i = (u * groups + g) * 32 + lane()
            if g < groups and k >= 0:
                place = load(places[u, k]) + (ranks[g] & 65535)
                store(entries[place], cast(k << 16 | i, u32))
        cta_sync()

        # Walk over a share of the list. `head`: the cluster began in an earlier warp's share.
        blocks = cdiv(total, ROWS)
        length = cdiv(blocks, WARPS) * ROWS
        low = min(u * length, blocks * ROWS)
        high = min(low + length, blocks * ROWS)
        acc = registers(f32, V, fill=0.0)
        rows = registers(f32, ROWS * V)
        current = cluster_of(load(entries[low]))
        head = low > 0 and cluster_of(load(entries[max(low - 1, 0)])) == current
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
                            if head:
                                store(heads[u, lane()], acc)
                            else:
                                store(partial[b, part, base + current, column], acc, mask=inside)
                            head = False
                            current = k
                            for q in range(V, unroll=True):
                                acc[q] = 0.0
                        for q in range(V, unroll=True):
                            acc[q] = acc[q] + rows[i * V + q]
        if head:
            store(heads[u, lane()], acc)
        cta_sync()
        if current != END and not head:
            w = u + 1
            end = high
            while cluster_of(load(entries[end])) == current:
                more = load(heads[w, lane()])
                for q in static_range(V):
                    acc[q] = acc[q] + more[q]
                w = w + 1
                end = min(end + length, blocks * ROWS)
            store(partial[b, part, base + current, column], acc, mask=inside)


@cake.schedule(target="sm_90a")
def reduce(
    partial: Tensor[f32, "B", PARTS, "K", "D"],
    sizes: Tensor[i32, "B", PARTS, "K"],
    c_old: Tensor[T, "B", "K", "D"],
    c_new: Tensor[T, "B", "K", "D"],
    sums: Tensor[f32, "B", "K", "D"],
    counts: Tensor[i32, "B", "K"],
    *,
    T: meta(bf16, f16, f32) = bf16,
    V: meta(1, 2, 4, 8) = 4,
    PARTS: meta(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024) = 4,
):
    GROUP = min(PARTS, 8)
    require(D % V == 0)
    b, block = grid(B, cdiv(K, 8))
    rows = role(warps=8)

    with rows as u:
        k = block * 8 + u
        if k < K:
            for d in range(lane() * V, D, 32 * V):
                count = 0
                total = registers(f32, V, fill=0.0)
                for first in range(0, PARTS, GROUP):
                    own = registers(i32, GROUP)
                    for p in range(GROUP, unroll=True):
                        own[p] = load(sizes[b, first + p, k])
                    for p in range(GROUP, unroll=True):
                        count = count + own[p]
                        here = own[p] > 0
                        v = load(partial[b, first + p, k, d], width=V, mask=here, fill=0.0)
                        for q in static_range(V):
                            total[q] = total[q] + v[q]
                old = load(c_old[b, k, d], width=V, mask=count == 0)
                new = registers(f32, V)
                for q in static_range(V):
                    mean = total[q] / cast(max(count, 1), f32)
                    new[q] = select(count > 0, mean, cast(old[q], f32))
                store(sums[b, k, d], total)
                if V == 1:
                    store(c_new[b, k, d], cast(new[0], T))
                else:
                    store(c_new[b, k, d], cast(new, T))
                if d == 0:
                    store(counts[b, k], count)
