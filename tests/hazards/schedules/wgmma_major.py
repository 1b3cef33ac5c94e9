@cake.schedule(target="sm_90a")
def good(x: Tensor[e4m3, 64, 128], w: Tensor[e4m3, 64, 128], y: Tensor[f32, 64, 64]):
    X = smem(e4m3, (64, 128), stages=1, swizzle=128)
    W = smem(e4m3, (64, 128), stages=1, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, W, producer=copier, consumer=math)
    with copier:
        with ring.fill() as s:
            tma_load(X[s], x[0, 0])
            tma_load(W[s], w[0, 0])
    with math:
        acc = fragment(f32, (64, 64))
        with ring.use() as s:
            wgmma(acc, X[s], W[s].T, init=True)
            wgmma_wait(0)
        store(y[0, 0], acc)


@cake.schedule(target="sm_90a")
def bad(x: Tensor[e4m3, 64, 128], w: Tensor[e4m3, 128, 64], y: Tensor[f32, 64, 64]):
    X = smem(e4m3, (64, 128), stages=1, swizzle=128)
    W = smem(e4m3, (128, 64), stages=1, swizzle=64)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, W, producer=copier, consumer=math)
    with copier:
        with ring.fill() as s:
            tma_load(X[s], x[0, 0])
            tma_load(W[s], w[0, 0])
    with math:
        acc = fragment(f32, (64, 64))
        with ring.use() as s:
            wgmma(acc, X[s], W[s], init=True)  # refused
            wgmma_wait(0)
        store(y[0, 0], acc)
