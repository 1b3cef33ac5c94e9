@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M % 2 == 0)
    cluster(2)
    (m,) = grid(M)
    P = smem(f32, (32,))
    r = role(warps=1)
    with r:
        store(P[lane()], load(x[m, lane()]))
        cluster_sync()
        v = load(P[lane()], peer=1 - cta_rank())
        cluster_sync()
        store(y[m, lane()], v)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M % 2 == 0)
    cluster(2)
    (m,) = grid(M)
    P = smem(f32, (32,))
    r = role(warps=1)
    with r:
        store(P[lane()], load(x[m, lane()]))
        cluster_sync()
        v = load(P[lane()], peer=1 - cta_rank())  # refused
        store(y[m, lane()], v)
