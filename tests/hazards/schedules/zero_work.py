@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", 32]):
    require(K > 0, K % 4 == 0)
    m = grid(M)
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for k in range(cdiv(K, 32)):
            with xs.fill() as s:
                tma_load(X[s], x[m, k * 32])
    with adder:
        first = wait(xs)
        total = load(X[first][0, lane()])
        fence_async()
        release(xs, first)
        for k in range(1, cdiv(K, 32)):
            with xs.use() as s:
                total = total + load(X[s][0, lane()])
                fence_async()
        store(y[m, lane()], total)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", 32]):
    require(K % 4 == 0)
    m = grid(M)
    X = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for k in range(cdiv(K, 32)):
            with xs.fill() as s:
                tma_load(X[s], x[m, k * 32])
    with adder:
        first = wait(xs)  # refused
        total = load(X[first][0, lane()])
        fence_async()
        release(xs, first)
        for k in range(1, cdiv(K, 32)):
            with xs.use() as s:
                total = total + load(X[s][0, lane()])
                fence_async()
        store(y[m, lane()], total)
