@cake.schedule(target="sm_90a")
def good(y: Tensor[f32, 64, 24]):
    C = smem(bf16, (24, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        for i in range(12):
            store(C[i * 2 + warp() // 2, thread() % 64], cast(1.0, bf16))
        fence_async()
        unit_sync()
        a = fragment(bf16, (64, 64), fill=1.0)
        acc = fragment(f32, (64, 24))
        wgmma(acc, a, C.T, init=True)
        wgmma_wait(0)
        store(y[0, 0], acc)


@cake.schedule(target="sm_90a")
def bad(y: Tensor[f32, 64, 24]):
    C = smem(bf16, (288, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        for i in range(144):
            store(C[i * 2 + warp() // 2, thread() % 64], cast(1.0, bf16))
        fence_async()
        unit_sync()
        a = fragment(bf16, (64, 64), fill=1.0)
        acc = fragment(f32, (64, 288))
        wgmma(acc, a, C.T, init=True)  # refused
        wgmma_wait(0)
        store(y[0, 0], columns(acc, 0, 24))
