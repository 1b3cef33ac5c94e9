@cake.schedule(target="sm_100a")
def good(x: Tensor[bf16, 128, 64], y: Tensor[f32, 128, 32]):
    X = smem(bf16, (128, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        cta_sync()
        with xs.fill() as s:
            tma_load(X[s], x[0, 0])
        cta_sync()
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        s = wait(xs)
        tcgen05_fence_after()
        tcgen05_mma(T[0], X[s], X[s].T, init=True)
        tcgen05_commit(xs, s)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()


@cake.schedule(target="sm_100a")
def bad_no_fence_after(x: Tensor[bf16, 128, 64], y: Tensor[f32, 128, 32]):
    X = smem(bf16, (128, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        cta_sync()
        with xs.fill() as s:
            tma_load(X[s], x[0, 0])
        cta_sync()
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        s = wait(xs)
        tcgen05_fence_after()
        tcgen05_mma(T[0], X[s], X[s].T, init=True)
        tcgen05_commit(xs, s)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
        r = tcgen05_ld(T[0], 0, 32)  # refused
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()


@cake.schedule(target="sm_100a")
def bad_no_fence_before(x: Tensor[bf16, 128, 64], y: Tensor[f32, 128, 32]):
    X = smem(bf16, (128, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    xs = pipeline(X, producer=copier, consumer=math)
    with copier:
        cta_sync()
        with xs.fill() as s:
            tma_load(X[s], x[0, 0])
        cta_sync()
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        s = wait(xs)
        tcgen05_fence_after()
        tcgen05_mma(T[0], X[s], X[s].T, init=True)
        tcgen05_commit(xs, s)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)  # refused
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)
        tcgen05_wait_ld(r)
        store(y[thread(), 0], r)
        cta_sync()
