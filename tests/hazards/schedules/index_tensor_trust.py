@cake.schedule(target="sm_80")
def good(ids: Tensor[i32, "N"], x: Tensor[f32, "K", 32], y: Tensor[f32, "N", 32]):
    require(K > 0)
    n = grid(N)
    r = role(warps=1)
    with r:
        k = max(min(load(ids[n]), K - 1), 0)
        store(y[n, lane()], load(x[k, lane()]))


@cake.schedule(target="sm_80")
def bad(ids: Tensor[i32, "N"], x: Tensor[f32, "K", 32], y: Tensor[f32, "N", 32]):
    require(K > 0)
    n = grid(N)
    r = role(warps=1)
    with r:
        k = load(ids[n])
        store(y[n, lane()], load(x[k, lane()]))
