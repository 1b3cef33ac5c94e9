@cake.schedule(target="sm_90a")
def good(y: Tensor[f32, 64, 64]):
    C = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C, a)
        fence_async()
        unit_sync()
        acc = fragment(f32, (64, 64))
        wgmma(acc, a, C.T, init=True)
        wgmma_wait(0)
        store(y[0, 0], acc)


@cake.schedule(target="sm_90a")
def bad(y: Tensor[f32, 64, 64]):
    C = smem(bf16, (64, 64), swizzle=128)
    math = role(warps=4)
    with math:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C, a)
        fence_async()
        role_sync()
        acc = fragment(f32, (64, 64))
        wgmma(acc, a, C.T, init=True)  # refused
        wgmma_wait(0)
        store(y[0, 0], acc)
