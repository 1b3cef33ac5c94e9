"""y = x * rsqrt(mean(x^2) + eps) * w, one CTA a row; the row stays in registers between the
passes.
"""


@cake.schedule(target="sm_80")
def rmsnorm(
    x: Tensor[T, "M", "D"],
    w: Tensor[T, "D"],
    y: Tensor[T, "M", "D"],
    eps: f32,
    *,
    T: meta(bf16, f16, f32) = bf16,
    WARPS: meta(1, 2, 4, 8, 16) = 4,
    V: meta(1, 2, 4, 8) = 8,
    PER: meta(1, 2, 4, 8) = 4,
):
    STEP = WARPS * 32 * V
    require(D % V == 0, D <= PER * STEP)
    (row,) = grid(M)
    parts = smem(f32, (WARPS,))
    rows = role(warps=WARPS)

    with rows as u:
        at = (u * 32 + lane()) * V
        kept = registers(f32, PER * V, fill=0.0)
        total = 0.0
        for p in static_range(PER):
            v = load(x[row, at + p * STEP], width=V, mask=at + p * STEP < D)
            for i in static_range(V):
                e = cast(v[i], f32)
                kept[p * V + i] = e
                total = fma(e, e, total)
        total = warp_sum(total)
        if lane() == 0:
            store(parts[u], total)
        cta_sync()
        whole = 0.0
        for i in static_range(WARPS):
            whole = whole + load(parts[i])
        scale = rsqrt(whole / cast(D, f32) + eps)
        for p in static_range(PER):
            inside = at + p * STEP < D
            g = load(w[at + p * STEP], width=V, mask=inside)
            if V == 1:
                e = kept[p] * scale * cast(g[0], f32)
                store(y[row, at + p * STEP], cast(e, T), mask=inside)
            else:
                out = registers(T, V)
                for i in static_range(V):
                    out[i] = cast(kept[p * V + i] * scale * cast(g[i], f32), T)
                store(y[row, at + p * STEP], out, mask=inside)
