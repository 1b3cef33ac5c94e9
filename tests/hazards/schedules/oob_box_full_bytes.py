@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(cdiv(M, 8))
    X = smem(f32, (8, 32))
    full = barrier(arrivals=1)
    copier = role(warps=1)
    mover = role(warps=8)
    with copier:
        expect_tx(full, 0, 1024)
        tma_load(X, x[m * 8, 0], barrier=full)
        arrive(full, 0)
    with mover as u:
        barrier_wait(full, 0, 0)
        store(y[m * 8 + u, lane()], load(X[u, lane()]), mask=m * 8 + u < M)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(cdiv(M, 8))
    X = smem(f32, (8, 32))
    full = barrier(arrivals=1)
    copier = role(warps=1)
    mover = role(warps=8)
    with copier:
        if m * 8 + 8 <= M:
            expect_tx(full, 0, 1024)
        else:
            expect_tx(full, 0, 128)
        tma_load(X, x[m * 8, 0], barrier=full)
        arrive(full, 0)  # refused
    with mover as u:
        barrier_wait(full, 0, 0)
        store(y[m * 8 + u, lane()], load(X[u, lane()]), mask=m * 8 + u < M)
