"""Right schedules in which accesses are kept apart by more than one fact, and a slip in each."""

from __future__ import annotations

import pytest

from .examples import found, verdict

PAIRS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 4, 32], y: Tensor[f32, "M", 4, 32]):
    S = smem(f32, (4, 32), stages=2)
    pair = named_barrier(threads=64, slots=2)
    r = role(warps=4)
    with r as u:
        for m in range(M):
            store(S[m % 2][u, lane()], load(x[m, u, lane()]))
            named_sync(pair, u // 2)
            store(y[m, u, lane()], load(S[m % 2][u + 1 - u % 2 * 2, lane()]))
"""

FEW_ROUNDS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[i32, "M", 4, 32], y: Tensor[i32, "M", 4, 32]):
    A = smem(i32, (8, 32))
    r = role(warps=4)
    with r as u:
        for k in range(M):
            for i in range(2):
                store(A[u * 2 + i, lane()], load(x[k, u, lane()]))
            role_sync()
            for i in range(2):
                store(y[k, u, lane()], load(A[((u + 2) % 4) * 2 + i, lane()]))
            role_sync()
"""

PEERS = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 4, 32], y: Tensor[f32, "M", 32], K: i32):
    require(M % 4 == 0)
    cluster(4)
    m = grid(M)
    P = smem(f32, (32,), stages=2)
    r = role(warps=1)
    with r:
        total = 0.0
        for k in range(K):
            store(P[k % 2][lane()], load(x[m, k % 4, lane()]))
            cluster_sync()
            total = total + load(P[k % 2][lane()], peer=(cta_rank() + 1) % 4)
        cluster_sync()
        store(y[m, lane()], total)
"""

EPILOGUES = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[bf16, "M", 128]):
    E = smem(bf16, (64, 128), stages=8, swizzle=128)
    math = role(warpgroups=2)
    with math as wg:
        for k in range(3):
            tma_store_wait(3)
            unit_sync()
            tile = fragment(f32, (64, 128), fill=0.0)
            stmatrix(E[wg * 4 + k % 4], cast(tile + cast(k, f32), bf16))
            fence_async()
            unit_sync()
            tma_store(y[(k * 2 + wg) * 64, 0], E[wg * 4 + k % 4])
            tma_store_commit()
        tma_store_wait(0)
"""

SLOTS_IN_TURN = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 2, 32], y: Tensor[f32, "M", 2, 32]):
    X = smem(f32, (2, 32), stages=3)
    ready = named_barrier(threads=128, slots=3)
    done = named_barrier(threads=128, slots=3)
    writer = role(warps=2)
    reader = role(warps=2)
    with writer as u:
        for k in range(M):
            if k >= 3:
                named_sync(done, k % 3)
            store(X[k % 3][u, lane()], load(x[k, u, lane()]))
            named_arrive(ready, k % 3)
    with reader as u:
        for k in range(M):
            named_sync(ready, k % 3)
            store(y[k, u, lane()], load(X[k % 3][1 - u, lane()]))
            if k + 3 < M:
                named_arrive(done, k % 3)
"""

BLOCKS = """
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[bf16, "M", 128]):
    E = smem(bf16, (64, 128), stages=4, swizzle=128)
    math = role(warpgroups=2)
    with math as wg:
        for k in range(cdiv(M, 128)):
            tma_store_wait(1)
            unit_sync()
            tile = fragment(f32, (64, 128), fill=0.0)
            stmatrix(E[wg * 2 + k % 2], cast(tile + cast(k, f32), bf16))
            fence_async()
            unit_sync()
            tma_store(y[(k * 2 + wg) * 64, 0], E[wg * 2 + k % 2])
            tma_store_commit()
        tma_store_wait(0)
"""

CASES = {
    "pairs of warps": (PAIRS, ("u + 1 - u % 2 * 2", "3 - u"), {"CK453"}),
    "slots in turn": (SLOTS_IN_TURN, ("role(warps=2)", "role(warps=3)"), {"CK333"}),
    "few rounds": (FEW_ROUNDS, ("range(2)", "range(3)"), {"CK319", "CK343"}),
    "a block of stages for each unit": (BLOCKS, ("wait(1)", "wait(2)"), {"CK344"}),
    "blocks that overlap": (BLOCKS, ("wg * 2", "wg"), {"CK451", "CK452"}),
    "a block and a half": (BLOCKS, ("k % 2", "k % 3"), {"CK319"}),
    "fewer rounds than stages": (EPILOGUES, ("wg * 4", "wg * 2"), {"CK343", "CK351"}),
    "stages that peers read": (
        PEERS,
        ("            cluster_sync()\n            total", "            total"),
        {"CK453", "CK465"},
    ),
    "one stage that peers read": (PEERS, ("k % 2", "0"), {"CK452", "CK453"}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_right_form_is_accepted_and_the_slip_is_not(name: str) -> None:
    text, (old, new), codes = CASES[name]
    v = verdict(text)
    assert v.status == "accepted", found(v)
    slipped = text.replace(old, new)
    assert slipped != text
    v = verdict(slipped)
    assert v.status == "rejected", found(v)
    assert codes & {d.code for d in v.diagnostics}, found(v)
