"""Softmax along the last axis: one CTA a row, one pass for maximum and sum, one for the result.

Each thread keeps a running maximum and the sum scaled to it; a maximum of -inf stands for "nothing
seen" and scales by 0, so a row of -inf gives NaN as the definition does, and NaN spreads.
"""


@cake.inline
def reference(top):
    return select(top == -inf, 0.0, top)


@cake.schedule(target="sm_80")
def softmax(
    x: Tensor[T, "M", "N"],
    y: Tensor[T, "M", "N"],
    *,
    T: meta(bf16, f16, f32) = bf16,
    WARPS: meta(1, 2, 4, 8) = 4,
    V: meta(1, 2, 4, 8) = 8,
):
    LOG2E = 1.4426950408889634
    require(N % V == 0)
    (row,) = grid(M)
    tops = smem(f32, (WARPS,))
    sums = smem(f32, (WARPS,))
    rows = role(warps=WARPS)

    with rows as u:
        top = -inf
        total = 0.0
        for d in range((u * 32 + lane()) * V, N, WARPS * 32 * V):
            v = load(x[row, d], width=V)
            new = top
            for i in static_range(V):
                new = max(new, cast(v[i], f32))
            at = reference(new)
            total = total * exp2((top - at) * LOG2E)
            for i in static_range(V):
                total = total + exp2((cast(v[i], f32) - at) * LOG2E)
            top = new
        best = warp_max(top)
        total = warp_sum(total * exp2((top - reference(best)) * LOG2E))
        if lane() == 0:
            store(tops[u], best)
            store(sums[u], total)
        cta_sync()
        whole = -inf
        for i in static_range(WARPS):
            whole = max(whole, load(tops[i]))
        norm = 0.0
        for i in static_range(WARPS):
            norm = norm + load(sums[i]) * exp2((load(tops[i]) - reference(whole)) * LOG2E)
        scale = 1.0 / norm
        for d in range((u * 32 + lane()) * V, N, WARPS * 32 * V):
            v = load(x[row, d], width=V)
            if V == 1:
                e = exp2((cast(v[0], f32) - reference(whole)) * LOG2E)
                store(y[row, d], cast(e * scale, T))
            else:
                out = registers(T, V)
                for i in static_range(V):
                    e = exp2((cast(v[i], f32) - reference(whole)) * LOG2E)
                    out[i] = cast(e * scale, T)
                store(y[row, d], out)
