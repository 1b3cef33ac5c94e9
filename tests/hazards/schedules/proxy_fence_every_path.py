@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, "K", 32], y: Tensor[f32, 1, 32]):
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 0.0)
        for k in range(K):
            store(E[0, lane()], load(E[0, lane()]) + load(x[k, lane()]))
        fence_async()
        unit_sync()
        tma_store(y[0, 0], E)
        tma_store_commit()
        tma_store_wait(0)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, "K", 32], y: Tensor[f32, 1, 32]):
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        store(E[0, lane()], 0.0)
        for k in range(K):
            store(E[0, lane()], load(E[0, lane()]) + load(x[k, lane()]))
            fence_async()
        unit_sync()
        tma_store(y[0, 0], E)  # refused
        tma_store_commit()
        tma_store_wait(0)
