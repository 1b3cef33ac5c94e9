"""y = x * rsqrt(mean(x^2) + eps) * w, one warp a row, vector loads of V elements."""


@cake.schedule(target="sm_80")
def rmsnorm(
    x: Tensor[T, "M", "D"],
    w: Tensor[T, "D"],
    y: Tensor[T, "M", "D"],
    eps: f32,
    *,
    T: meta(bf16, f16, f32) = bf16,
    WARPS: meta(1, 2, 4, 8) = 4,
    V: meta(1, 2, 4, 8) = 8,
):
    require(D % V == 0)
    (block,) = grid(cdiv(M, WARPS))
    rows = role(warps=WARPS)

    with rows as u:
        row = block * WARPS + u
        if row < M:
            total = 0.0
            for d in range(lane() * V, D, 32 * V):
                v = load(x[row, d], width=V)
                for i in static_range(V):
                    e = cast(v[i], f32)
                    total = fma(e, e, total)
            scale = rsqrt(warp_sum(total) / cast(D, f32) + eps)
            for d in range(lane() * V, D, 32 * V):
                v = load(x[row, d], width=V)
                g = load(w[d], width=V)
                out = registers(T, V)
                for i in static_range(V):
                    out[i] = cast(cast(v[i], f32) * scale * cast(g[i], f32), T)
                store(y[row, d], out)
