@cake.schedule(target="sm_90a")
def good(x: Tensor[bf16, 64, 64], y: Tensor[bf16, 2, 64]):
    cluster(2)
    (m,) = grid(2)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    mover = role(warps=2)
    xs = pipeline(X, producer=loader, consumer=mover, multicast=True)
    with loader:
        with xs.fill() as s:
            tma_load(X[s], x[0, 0], multicast=True)
        cluster_sync()
    with mover as u:
        with xs.use() as s:
            store(y[m, u * 32 + lane()], load(X[s][0, u * 32 + lane()]))
            fence_async()
        cluster_sync()


@cake.schedule(target="sm_120a")
def bad(x: Tensor[bf16, 64, 64], y: Tensor[bf16, 2, 64]):
    cluster(2)
    (m,) = grid(2)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    loader = role(warps=1)
    mover = role(warps=2)
    xs = pipeline(X, producer=loader, consumer=mover, multicast=True)
    with loader:
        with xs.fill() as s:
            tma_load(X[s], x[0, 0], multicast=True)  # refused
        cluster_sync()
    with mover as u:
        with xs.use() as s:
            store(y[m, u * 32 + lane()], load(X[s][0, u * 32 + lane()]))
            fence_async()
        cluster_sync()
