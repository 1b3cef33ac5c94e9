"""Legal patterns that naive checkers reject. None of them may be rejected here.

Each has a public report of a tool that got it wrong. Most must be accepted outright; some are left
undecided, because their protocol is hand-written.
"""

from __future__ import annotations

import pytest

from .examples import found, verdict

PARITY_ONE = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, 32], y: Tensor[f32, 32]):
    X = smem(f32, (32,))
    full = barrier(arrivals=1)
    empty = barrier(arrivals=1)
    writer = role(warps=1)
    reader = role(warps=1)
    with writer:
        barrier_wait(empty, 0, 1)
        store(X[lane()], load(x[lane()]))
        arrive(full, 0)
    with reader:
        barrier_wait(full, 0, 0)
        store(y[lane()], load(X[lane()]))
        arrive(empty, 0)
"""

SEVERAL_COPIES = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=2)
    Z = smem(f32, (1, 32), stages=2)
    copier = role(warps=1)
    adder = role(warps=1)
    ring = pipeline(X, Z, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with ring.fill() as s:
                tma_load(X[s], x[m, 0])
                tma_load(Z[s], x[m, 0])
    with adder:
        for m in range(M):
            with ring.use() as s:
                v = load(X[s][0, lane()]) + load(Z[s][0, lane()])
                fence_async()
                store(y[m, lane()], v)
"""

COPY_THROUGH_MBARRIER = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    X = smem(f32, (1, 32), stages=3)
    copier = role(warps=1)
    adder = role(warps=1)
    ring = pipeline(X, producer=copier, consumer=adder)
    with copier:
        for m in range(M):
            with ring.fill() as s:
                cp_async(X[s], x[m, 0])
    with adder:
        for m in range(M):
            with ring.use() as s:
                store(y[m, lane()], load(X[s][0, lane()]))
"""

ARRIVE_AND_SYNC = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 256]):
    first = role(warps=4)
    second = role(warps=4)
    turn = named_barrier(threads=256)
    with first as u:
        store(y[u * 32 + lane()], 1.0)
        named_arrive(turn)
    with second as u:
        named_sync(turn)
        store(y[128 + u * 32 + lane()], 2.0)
"""

ONE_ACCUMULATOR = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, 64, 64]):
    C = smem(bf16, (64, 64), swizzle=128)
    math = role(warpgroups=1)
    with math:
        a = fragment(bf16, (64, 64), fill=1.0)
        stmatrix(C, a)
        fence_async()
        unit_sync()
        acc = fragment(f32, (64, 64))
        wgmma(acc, a, C.T, init=True)
        for k in range(7):
            wgmma(acc, a, C.T)
        wgmma_wait(0)
        store(y[0, 0], acc)
"""

RELEASE_ONE_LATER = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K > 0)
    X = smem(bf16, (64, 64), stages=3, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(cdiv(K, 64)):
            with ring.fill() as s:
                tma_load(X[s], x[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64))
        last = wait(ring)
        wgmma(acc, X[last], X[last].T, init=True)
        for k in range(1, cdiv(K, 64)):
            s = wait(ring)
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(1)
            release(ring, last)
            last = s
        wgmma_wait(0)
        release(ring, last)
        store(y[0, 0], acc)
"""

TWO_BRANCHES_ARRIVE = """
@cake.schedule(target="sm_80")
def kernel(y: Tensor[f32, 96]):
    first = role(warps=2)
    second = role(warps=1)
    ready = named_barrier(threads=96)
    with first as u:
        store(y[u * 32 + lane()], 1.0)
        if u == 0:
            named_arrive(ready)
        else:
            named_arrive(ready)
    with second:
        named_sync(ready)
        store(y[64 + lane()], 2.0)
"""

EMPTY_GROUPS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    X = smem(f32, (1, 32), stages=3)
    r = role(warps=1)
    with r:
        total = 0.0
        for p in static_range(2):
            if p < M:
                cp_async(X[p], x[p, 0])
            cp_async_commit()
        for k in range(M):
            cp_async_wait(1)
            unit_sync()
            total = total + load(X[k % 3][0, lane()])
            if k + 2 < M:
                cp_async(X[(k + 2) % 3], x[k + 2, 0])
            cp_async_commit()
        store(y[lane()], total)
"""

SAME_VALUE = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32], done: Tensor[i32, 1]):
    m = grid(M)
    r = role(warps=2)
    with r as u:
        if u == 0:
            store(y[m, lane()], load(x[m, lane()]))
        store(done[0], 1)
"""

OUT_OF_RANGE_TILES = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", "K"], y: Tensor[f32, "M", 64]):
    m = grid(cdiv(M, 64))
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(cdiv(K, 64) + 1):
            with ring.fill() as s:
                tma_load(X[s], x[m * 64, k * 64])
    with math:
        acc = fragment(f32, (64, 64), fill=0.0)
        for k in range(cdiv(K, 64) + 1):
            with ring.use() as s:
                wgmma(acc, X[s], X[s].T)
                wgmma_wait(0)
        store(y[m * 64, 0], acc)
"""

ALIAS_ORDERED_BY_RINGS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    P = pool(128)
    X = smem(f32, (32,), stages=1, pool=P, offset=0)
    Z = smem(f32, (32,), stages=1, pool=P, offset=0)
    D = smem(f32, (32,), stages=1)
    first = role(warps=1)
    second = role(warps=1)
    xs = pipeline(X, producer=first, consumer=second)
    zs = pipeline(Z, producer=second, consumer=first)
    ds = pipeline(D, producer=first, consumer=second)
    with first:
        for m in range(M):
            with xs.fill() as s:
                store(X[s][lane()], load(x[m, lane()]))
            with zs.use() as z:
                store(y[m, lane()], load(Z[z][lane()]))
            with ds.fill() as d:
                store(D[d][lane()], 0.0)
    with second:
        v = 0.0
        for m in range(M):
            with xs.use() as s:
                v = load(X[s][lane()])
            with zs.fill() as z:
                store(Z[z][lane()], v * 2.0)
            with ds.use() as d:
                v = load(D[d][lane()])
"""

PRODUCER_AHEAD = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, "M", "K"], y: Tensor[f32, "M", 64]):
    tiles = persistent(cdiv(M, 64))
    X = smem(bf16, (64, 64), stages=4, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, producer=copier, consumer=math)
    with copier:
        for m in tiles:
            for k in range(cdiv(K, 64)):
                with ring.fill() as s:
                    tma_load(X[s], x[m * 64, k * 64])
    with math:
        for m in tiles:
            acc = fragment(f32, (64, 64), fill=0.0)
            for k in range(cdiv(K, 64)):
                with ring.use() as s:
                    wgmma(acc, X[s], X[s].T)
                    wgmma_wait(0)
            store(y[m * 64, 0], acc)
"""

DEAD_WAIT = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, 1, 32], y: Tensor[f32, 32]):
    X = smem(f32, (1, 32))
    full = barrier(arrivals=1)
    r = role(warps=1)
    with r:
        expect_tx(full, 0, 128)
        arrive(full, 0)
        tma_load(X, x[0, 0], barrier=full, slot=0)
        barrier_wait(full, 0, 0)
        barrier_wait(full, 0, 0)
        store(y[lane()], load(X[0, lane()]))
"""

CHAINED_ATOMICS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32], count: Tensor[i32, 1],
           parts: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        store(parts[m, lane()], load(x[m, lane()]))
        fence()
        unit_sync()
        ticket = 0
        if lane() == 0:
            ticket = atomic_add(count[0], 1, order="acq_rel")
        ticket = shfl(ticket, 0)
        if ticket == M - 1:
            fence()
            total = 0.0
            for i in range(M):
                total = total + load(parts[i, lane()], cache="cg")
            store(y[lane()], total)
"""

PATTERNS = {
    "fresh barrier, wait on parity 1": (PARITY_ONE, True),
    "several copies, one arming arrival": (SEVERAL_COPIES, True),
    "cp.async completed through an mbarrier": (COPY_THROUGH_MBARRIER, True),
    "arrive and sync on one id": (ARRIVE_AND_SYNC, True),
    "products on one accumulator without waits": (ONE_ACCUMULATOR, True),
    "slot released one round later": (RELEASE_ONE_LATER, True),
    "two branches arrive on one id": (TWO_BRANCHES_ARRIVE, True),
    "empty commit groups in the tail": (EMPTY_GROUPS, True),
    "same value stored by all": (SAME_VALUE, True),
    "copies wholly out of range": (OUT_OF_RANGE_TILES, True),
    "alias ordered by a chain of rings": (ALIAS_ORDERED_BY_RINGS, True),
    "producer ahead across tiles": (PRODUCER_AHEAD, True),
    "wait on a phase that is over": (DEAD_WAIT, True),
    "release chained through atomics": (CHAINED_ATOMICS, False),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_a_legal_pattern_is_not_rejected(name: str) -> None:
    text, complete = PATTERNS[name]
    v = verdict(text)
    assert not [d for d in v.diagnostics if d.severity == "error"], found(v)
    assert v.status == ("accepted" if complete else "incomplete"), found(v)
