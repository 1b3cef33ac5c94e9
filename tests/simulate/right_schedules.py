"""Right schedules, which the hazards break."""

RING = """
X = smem(bf16, (64, 64), stages=2, swizzle=128)
fill = role(warps=1)
use = role(warpgroups=1)
ring = pipeline(X, producer=fill, consumer=use)
with fill:
    for i in range(5):
        with ring.fill() as s:
            tma_load(X[s], x[0, 0])
with use:
    acc = fragment(f32, (64, 64), fill=0.0)
    for i in range(5):
        s = wait(ring)
        wgmma(acc, X[s], X[s].T)
        wgmma_wait(0)
        release(ring, s)
    store(y[0, 0], acc)
"""
"""A ring of TMA copies into products."""

FENCED = """
S = smem(f32, (64, 64))
math = role(warpgroups=1)
with math:
    for i in static_range(32):
        store(S[thread() // 2, thread() % 2 * 32 + i], cast(i, f32))
    fence_async()
    unit_sync()
    tma_store(y[0, 0], S)
    tma_store_commit()
    tma_store_wait(0)
"""
"""Plain stores that leave by TMA."""

STORED = (
    FENCED.replace("tma_store_wait(0)", "tma_store_wait(0, read=False)")
    + """
    w = load(y[0, thread() // 2])
    store(v[thread()], w)
"""
)
"""What TMA has stored is read back."""

CROSS = """
S = smem(f32, (128,))
math = role(warpgroups=1)
with math:
    store(S[thread()], load(v[thread()]))
    unit_sync()
    w = load(S[127 - thread()])
    store(v[thread()], w)
"""
"""Threads of a unit exchange values."""

EXCHANGE = """
S = smem(f32, (128,))
math = role(warpgroups=1)
with math:
    store(S[thread()], load(v[thread()]))
    unit_sync()
    w = load(S[127 - thread()])
    unit_sync()
    store(S[thread()], w)
    unit_sync()
    first = load(S[0])
    unit_sync()
    if thread() == 0:
        store(S[0], 5.0)
    unit_sync()
    store(v[thread()], load(S[0]) + first)
"""
"""Threads of a unit exchange values in one place."""

PASSED = """
S = smem(f32, (32,))
met = barrier(arrivals=1)
math = role(warps=2)
with math as u:
    if u == 0:
        store(S[lane()], 3.0)
        arrive(met, 0)
    else:
        barrier_wait(met, 0, 0)
        got = load(S[lane()])
        store(v[lane()], got)
"""
"""A warp hands values to another through an mbarrier."""

BLOCK = """
S = smem(f32, (4,))
math = role(warps=4)
with math as u:
    if lane() == 0:
        store(S[u], 1.0)
    cta_sync()
    total = load(S[0]) + load(S[1]) + load(S[2]) + load(S[3])
    store(v[u * 32 + lane()], total)
"""
"""Warps exchange values."""

RAW = """
S = smem(f32, (128,), swizzle=0)
full = barrier(arrivals=1)
math = role(warps=1)
with math:
    expect_tx(full, 0, 512)
    arrive(full, 0)
    bulk_load(S, v[0], barrier=full)
    barrier_wait(full, 0, 0)
    store(v[lane()], load(S[lane() + 32]))
"""
"""A bulk copy on a raw mbarrier."""

GROUPS = """
S = smem(bf16, (64, 64), stages=2, swizzle=128)
math = role(warps=1)
with math:
    cp_async(S[0], x[0, 0])
    cp_async_commit()
    cp_async(S[1], x[0, 0])
    cp_async_commit()
    cp_async_wait(1)
    unit_sync()
    a = ldmatrix(S[0][0:16, 0:16])
    cp_async_wait(0)
    unit_sync()
    b = ldmatrix(S[1][0:16, 0:16])
    store(z[0, 0], a)
    store(z[16, 0], b)
"""
"""Two groups of cp.async."""

PRODUCT = """
X = smem(bf16, (64, 64), stages=1, swizzle=128)
fill = role(warps=1)
use = role(warpgroups=1)
ring = pipeline(X, producer=fill, consumer=use)
with fill:
    with ring.fill() as s:
        tma_load(X[s], x[0, 0])
with use:
    acc = fragment(f32, (64, 64))
    left = fragment(bf16, (64, 64), fill=0.0)
    r = lanes(acc)
    with ring.use() as s:
        wgmma(acc, left, X[s].T, init=True)
        wgmma_wait(0)
    r[0] = r[0] + 1.0
    store(y[0, 0], acc)
"""
"""A product of registers, whose accumulator is opened."""

CLUSTER = """
cluster(2)
(b,) = grid(2)
S = smem(f32, (32,))
math = role(warps=1)
with math:
    store(S[lane()], cast(b, f32))
    cluster_arrive()
    cluster_wait()
    other = load(S[lane()], peer=1 - b)
    store(y[b, lane()], other)
    cluster_sync()
"""
"""Two CTAs read each other's shared memory."""

BOUNDS = """
S = smem(f32, (128,))
T = smem(f32, (32,), stages=2)
U = smem(f32, (128, 32))
math = role(warpgroups=1)
with math:
    t = thread()
    last = load(c[0]) + 1
    low = load(c[0]) + 64
    store(S[t], 1.0)
    store(T[last][lane()], 1.0, mask=t < 32)
    for i in static_range(32):
        store(U[t, i], 0.0)
    fence_async()
    unit_sync()
    a = load(S[t + 1], mask=t < 127)
    b = load(v[t - 1], mask=t > 0)
    r = registers(f32, 4, fill=0.0)
    if lane() < 4:
        r[lane()] = a + b
    tma_store(y[0, 0], U[low : low + 64])
    tma_store_commit()
    tma_store_wait(0)
"""
"""Accesses that just stay inside."""

OUTPUTS = """
w = workspace(i32, (32,))
flags = workspace(i32, (4,), zeroed=True)
math = role(warps=1)
with math:
    if lane() == 0:
        store(c[0], 1)
        reduce_add(c[0], 1)
        store(flags[0], 1)
        store(flags[0], 0)
    n = load(c[0])
    store(w[lane()], 7)
    m = load(w[lane()])
    store(y[0, lane()], cast(m + n, f32))
"""
"""Outputs and workspaces."""

FLAG = """
(b,) = grid(2)
flag = workspace(i32, (2,), zeroed=True)
math = role(warps=1)
with math:
    if b == 0:
        store(y[0, lane()], 3.0)
        atomic_exch(flag[0], 1, order="release")
    else:
        while load(flag[0], order="acquire") == 0:
            pass
        got = load(y[0, lane()])
        store(y[1, lane()], got)
        unit_sync()
        store(flag[0], 0)
"""
"""A CTA waits for another one's data."""
