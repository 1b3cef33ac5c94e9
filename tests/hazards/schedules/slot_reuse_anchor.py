@cake.schedule(target="sm_90a")
def good(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", 32]):
    require(K > 0, K % 4 == 0)
    tiles = persistent(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        for (m,) in tiles:
            total = 0.0
            for k in range(cdiv(K, 32)):
                total = total + load(x[m, k * 32 + lane()], mask=k * 32 + lane() < K, fill=0.0)
            tma_store_wait(0)
            store(E[0, lane()], total)
            fence_async()
            unit_sync()
            tma_store(y[m, 0], E)
            tma_store_commit()
        tma_store_wait(0)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", 32]):
    require(K > 0, K % 4 == 0)
    tiles = persistent(M)
    E = smem(f32, (1, 32))
    r = role(warps=1)
    with r:
        for (m,) in tiles:
            total = 0.0
            for k in range(cdiv(K, 32)):
                total = total + load(x[m, k * 32 + lane()], mask=k * 32 + lane() < K, fill=0.0)
                if k == 2:
                    tma_store_wait(0)
            store(E[0, lane()], total)  # refused
            fence_async()
            unit_sync()
            tma_store(y[m, 0], E)
            tma_store_commit()
        tma_store_wait(0)
