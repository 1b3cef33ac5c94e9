@cake.schedule(target="sm_100a")
def good(a: Tensor[bf16, "M", 64], b: Tensor[bf16, 128, 64], y: Tensor[f32, "M", 32]):
    cluster(2)
    (m,) = grid(cdiv(M, 256) * 2)
    A = smem(bf16, (128, 64), stages=1, swizzle=128)
    B = smem(bf16, (64, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1, pair=True)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    ab = pipeline(A, B, producer=copier, consumer=math, pair=True)
    with copier:
        cluster_sync()
        with ab.fill() as s:
            tma_load(A[s], a[m * 128, 0])
            tma_load(B[s], b[cta_rank() * 64, 0])
        cluster_sync()
    with math:
        tmem_alloc(T, word[0])
        cluster_sync()
        s = wait(ab)
        tcgen05_fence_after()
        tcgen05_mma(T[0], A[s], B[s].T, init=True)
        tcgen05_commit(ab, s)
        tcgen05_commit(done, 0)
        cluster_sync()
        tmem_free(T)
    with out:
        cluster_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)
        tcgen05_wait_ld(r)
        if m * 128 + thread() < M:
            store(y[m * 128 + thread(), 0], r)
        tcgen05_fence_before()
        cluster_sync()


@cake.schedule(target="sm_100a")
def bad_alloc(a: Tensor[bf16, "M", 64], b: Tensor[bf16, 128, 64], y: Tensor[f32, "M", 32]):
    cluster(2)
    (m,) = grid(cdiv(M, 256) * 2)
    A = smem(bf16, (128, 64), stages=1, swizzle=128)
    B = smem(bf16, (64, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1, pair=True)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    ab = pipeline(A, B, producer=copier, consumer=math, pair=True)
    with copier:
        cta_sync()
        with ab.fill() as s:
            tma_load(A[s], a[m * 128, 0])
            tma_load(B[s], b[cta_rank() * 64, 0])
        cluster_sync()
    with math:
        tmem_alloc(T, word[0])
        cta_sync()
        s = wait(ab)
        tcgen05_fence_after()
        tcgen05_mma(T[0], A[s], B[s].T, init=True)
        tcgen05_commit(ab, s)
        tcgen05_commit(done, 0)
        cluster_sync()
        tmem_free(T)
    with out:
        cta_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)  # refused
        tcgen05_wait_ld(r)
        if m * 128 + thread() < M:
            store(y[m * 128 + thread(), 0], r)
        tcgen05_fence_before()
        cluster_sync()


@cake.schedule(target="sm_100a")
def bad_free(a: Tensor[bf16, "M", 64], b: Tensor[bf16, 128, 64], y: Tensor[f32, "M", 32]):
    cluster(2)
    (m,) = grid(cdiv(M, 256) * 2)
    A = smem(bf16, (128, 64), stages=1, swizzle=128)
    B = smem(bf16, (64, 64), stages=1, swizzle=128)
    T = tmem(f32, (128, 128), stages=1, pair=True)
    word = smem(u32, (1,))
    done = barrier(arrivals=1)
    out = role(warpgroups=1)
    copier = role(warps=1)
    math = role(warps=1)
    ab = pipeline(A, B, producer=copier, consumer=math, pair=True)
    with copier:
        cluster_sync()
        with ab.fill() as s:
            tma_load(A[s], a[m * 128, 0])  # refused
            tma_load(B[s], b[cta_rank() * 64, 0])
        cta_sync()
    with math:
        tmem_alloc(T, word[0])
        cluster_sync()
        s = wait(ab)
        tcgen05_fence_after()
        tcgen05_mma(T[0], A[s], B[s].T, init=True)
        tcgen05_commit(ab, s)
        tcgen05_commit(done, 0)
        cta_sync()
        tmem_free(T)
    with out:
        cluster_sync()
        barrier_wait(done, 0, 0)
        tcgen05_fence_after()
        r = tcgen05_ld(T[0], 0, 32)
        tcgen05_wait_ld(r)
        if m * 128 + thread() < M:
            store(y[m * 128 + thread(), 0], r)
        tcgen05_fence_before()
        cta_sync()
