@cake.schedule(target="sm_90a")
def good(x: Tensor[bf16, "M", 64], y: Tensor[bf16, "M", 8]):
    m = grid(cdiv(M, 32))
    X = smem(bf16, (32, 8), stages=1)
    copier = role(warps=1)
    mover = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=mover)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m * 32, 0])
    with mover:
        with xs.use() as s:
            for c in static_range(8):
                store(y[m * 32 + lane(), c], load(X[s][lane(), c]), mask=m * 32 + lane() < M)
            fence_async()


@cake.schedule(target="sm_90a")
def bad(x: Tensor[bf16, "M", 64], y: Tensor[bf16, "M", 4]):
    m = grid(cdiv(M, 32))
    X = smem(bf16, (32, 4), stages=1)
    copier = role(warps=1)
    mover = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=mover)
    with copier:
        with xs.fill() as s:
            tma_load(X[s], x[m * 32, 0])  # refused
    with mover:
        with xs.use() as s:
            for c in static_range(4):
                store(y[m * 32 + lane(), c], load(X[s][lane(), c]), mask=m * 32 + lane() < M)
            fence_async()
