@cake.schedule(target="sm_80")
def good(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])
        top = warp_max(v)
        e = exp(v - (0.0 if top == -inf else top))
        total = warp_sum(e)
        store(y[m, lane()], 0.0 if total == 0.0 else e / total)


@cake.schedule(target="sm_80")
def bad(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        v = load(x[m, lane()])
        e = exp(v - warp_max(v))
        store(y[m, lane()], e / warp_sum(e))
