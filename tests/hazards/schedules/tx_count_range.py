@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, 8, 32], y: Tensor[f32, 32]):
    X = smem(f32, (8, 32))
    full = barrier(arrivals=1)
    r = role(warps=1)
    with r:
        expect_tx(full, 0, 1024)
        tma_load(X, x[0, 0], barrier=full)
        arrive(full, 0)
        barrier_wait(full, 0, 0)
        store(y[lane()], load(X[0, lane()]))


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, 8, 32], y: Tensor[f32, 32]):
    X = smem(f32, (8, 32))
    full = barrier(arrivals=1)
    r = role(warps=1)
    with r:
        expect_tx(full, 0, 1048576)  # refused
        tma_load(X, x[0, 0], barrier=full)
        arrive(full, 0)
        barrier_wait(full, 0, 0)
        store(y[lane()], load(X[0, lane()]))
