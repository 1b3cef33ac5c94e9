"""Families of generated schedules: hand-made phases, hand-overs, epilogues, clusters, aliases."""

from __future__ import annotations

from random import Random

from benchmarks.verifier.families import indented

HOPPER = ("sm_90a", "sm_100a", "sm_103a")
"""Targets with tensor maps, clusters and transaction barriers."""


def by_hand(r: Random, fault: str | None) -> str:
    """A ring of raw mbarriers: one role copies by TMA, the warps of another store the rows."""
    stages, warps = r.choice([1, 2, 3, 4, 5]), r.choice([1, 2, 4])
    tiles = r.random() < 0.5 or fault == "the counter restarts with every tile"
    if fault in ("phase of the round", "the counter restarts with every tile"):
        stages = max(stages, 2)
    rounds = r.choice(["K // 32", "K // 32 + 1", "11", "K // 64 * 2"])
    size = {"announces too little": 128 * warps // 2, "announces too much": 256 * warps}
    bytes_ = size.get(fault or "", 128 * warps)
    arrivals = {"frees too early": warps - 1, "waits for more arrivals": warps + 1}
    if fault == "frees too early":
        warps, bytes_ = 4, 512
        arrivals["frees too early"] = 3
    phase = "n" if fault == "phase of the round" else f"n // {stages}"
    first = f"{phase} % 2" if fault == "waits for the wrong phase first" else f"({phase} + 1) % 2"
    take = [f"barrier_wait(free, s, {first})"]
    fill = [
        f"expect_tx(full, s, {bytes_})",
        "tma_load(X[s], x[m, k * 32], barrier=full, slot=s)",
        "arrive(full, s)",
    ]
    if warps > 1:
        fill[1] = f"tma_load(X[s], x[m * {warps}, k * 32], barrier=full, slot=s)"
    if fault == "announces late":
        fill = [fill[2], fill[0], fill[1]]
    if fault == "does not wait for the slot":
        take = []
    use = ["v = load(X[s][u, lane()])", "fence_async()", "arrive(free, s)"]
    if fault == "frees before it reads":
        use = [use[2], use[0], use[1]]
    elif fault == "never frees":
        use = use[:2]
    row = "m" if warps == 1 else f"m * {warps} + u"
    use.append(f"store(y[{row}, k * 32 + lane()], v, mask={row} < M and k * 32 + lane() < K)")
    outer = ["for (m,) in tiles:"] if tiles else []
    deep = "    " * len(outer)
    start = ["n = 0", *outer]
    if fault == "the counter restarts with every tile":
        start = [*outer, "    n = 0"]

    def role(steps: list[str]) -> list[str]:
        inner = [f"s = n % {stages}", *steps, "n = n + 1"]
        return [*start, f"{deep}for k in range({rounds}):", *(f"{deep}    {i}" for i in inner)]

    rows = f"cdiv(M, {warps})"
    return f"""
@cake.schedule(target="{r.choice(HOPPER)}")
def kernel(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", "K"]):
    require(K > 0, K % 64 == 0)
    {f"tiles = persistent({rows})" if tiles else f"m = grid({rows})"}
    X = smem(f32, ({warps}, 32), stages={stages})
    copier = role(warps=1)
    mover = role(warps={warps})
    full = barrier(slots={stages}, arrivals=1)
    free = barrier(slots={stages}, arrivals={arrivals.get(fault or "", warps)})
    with copier:
{indented(2, role([*take, *fill]))}
    with mover as u:
{indented(2, role([f"barrier_wait(full, s, {phase} % 2)", *use]))}
"""


def handover(r: Random, fault: str | None) -> str:
    """One role hands tiles to another through named barriers, several slots in each direction."""
    slots, writers, readers = r.choice([1, 2, 3, 4]), r.choice([1, 2, 4]), r.choice([1, 2, 4])
    if fault == "signals another slot":
        slots = max(slots, 2)
    trip = r.choice(["M", "7", "M // 2 + 1", "cdiv(M, 3)"])
    kind = r.choice(["f32", "i32", "u32"])
    row = "min(k, M - 1)"
    late = slots + 1 if fault == "waits one round late" else slots
    slot = f"k % {slots}"
    wait = [f"if k >= {late}:", f"    named_sync(done, {slot})"]
    if fault == "does not wait for the slot":
        wait = []
    signal = f"named_arrive(ready, {slot})"
    if fault == "signals another slot":
        signal = f"named_arrive(ready, (k + 1) % {slots})"
    width = max(writers, readers)
    threads = 32 * (writers + readers)
    expected = threads + 32 if fault == "barrier expects more" else threads
    put = [
        *wait,
        f"for i in range({width // writers}):",
        f"    w = u + i * {writers}",
        f"    store(X[{slot}][w, lane()], load(x[{row}, w, lane()]))",
        signal,
    ]
    if fault == "signals before it writes":
        put = [*wait, signal, *put[-4:-1]]
    take = [
        f"named_sync(ready, {slot})",
        f"for i in range({width // readers}):",
        f"    w = u + i * {readers}",
        f"    store(y[{row}, w, lane()], load(X[{slot}][w, lane()]))",
        f"named_arrive(done, {slot})",
    ]
    if fault == "frees before it reads":
        take = [take[0], take[-1], *take[1:-1]]
    shape = f'Tensor[{kind}, "M", {width}, 32]'
    return f"""
@cake.schedule(target="{r.choice(["sm_80", "sm_86", "sm_89", "sm_90a"])}")
def kernel(x: {shape}, y: {shape}):
    require(M > 0)
    X = smem({kind}, ({width}, 32), stages={slots})
    writer = role(warps={writers})
    reader = role(warps={readers})
    ready = named_barrier(threads={expected}, slots={slots})
    done = named_barrier(threads={threads}, slots={slots})
    with writer as u:
        for k in range({trip}):
{indented(3, put)}
    with reader as u:
        for k in range({trip}):
{indented(3, take)}
"""


def epilogue(r: Random, fault: str | None) -> str:
    """Warpgroups write tiles by stmatrix and send them away by TMA, some buffers each."""
    groups, buffers = r.choice([1, 2]), r.choice([1, 2, 3, 4])
    columns = r.choice([64, 128])
    rounds = r.choice(["cdiv(M, {0})", "cdiv(M, {0}) + 1", "3"]).format(64 * groups)
    if fault is not None and rounds == "3":
        rounds = "9"  # more rounds than buffers: a fault shows when one is used again
    if fault == "buffers are not turned":
        buffers = max(buffers, 2)
    free = buffers if fault == "waits for too few" else buffers - 1
    index = f"wg * {buffers} + k % {buffers}"
    if fault == "buffers are not turned":
        index = f"wg * {buffers}"
    if fault == "all groups use the same buffers":
        groups, index = max(groups, 2), f"k % {buffers}"
    ready = ["fence_async()", r.choice(["unit_sync()", "role_sync()"])]
    if fault == "no fence":
        ready = ready[1:]
    elif fault == "no barrier":
        ready = ready[:1]
    elif fault == "barrier before the fence":
        ready = ready[::-1]
    body = [
        *([] if fault == "no wait" else [f"tma_store_wait({free})", "unit_sync()"]),
        f"tile = fragment(f32, (64, {columns}), fill=0.0)",
        f"stmatrix(E[{index}], cast(tile + cast(k, f32), bf16))",
        *ready,
        f"tma_store(y[(k * {groups} + wg) * 64, 0], E[{index}])",
        *([] if fault == "no commit" else ["tma_store_commit()"]),
    ]
    end = [] if fault == "no wait at the end" else ["tma_store_wait(0)"]
    return f"""
@cake.schedule(target="{r.choice(HOPPER)}")
def kernel(y: Tensor[bf16, "M", {columns}]):
    E = smem(bf16, (64, {columns}), stages={buffers * groups}, swizzle=128)
    math = role(warpgroups={groups})
    with math as wg:
        for k in range({rounds}):
{indented(3, body)}
{indented(2, end)}
"""


def peers(r: Random, fault: str | None) -> str:
    """CTAs of a cluster read what their neighbours stored, round after round."""
    size, warps, buffers = r.choice([2, 4, 8]), r.choice([1, 2, 4]), r.choice([1, 2, 3])
    if fault == "no second barrier":
        buffers = 1
    trip = r.choice(["K", "4", "K // 2", "K + 1"])
    step = r.choice([1, size - 1])
    peer = f"(cta_rank() + {step}) % {size}"
    slot = f"k % {buffers}"
    first, second = ["cluster_sync()"], ["cluster_sync()"] if buffers == 1 else []
    if fault == "no first barrier":
        first = []
    elif fault == "barrier of the CTA only":
        first = ["cta_sync()"]
    elif fault == "no second barrier":
        second = []
    elif fault == "some CTAs meet":
        first = ["if cta_rank() > 0:", "    cluster_sync()"]
    # The lowering keeps CTAs until the cluster is done: no barrier is needed at the end.
    end = r.choice([[], ["cluster_sync()"]])
    body = [
        f"store(P[{slot}][u, lane()], load(x[m, min(k, K - 1), u, lane()]))",
        *first,
        f"total = total + load(P[{slot}][u, lane()], peer={peer})",
        *second,
    ]
    return f"""
@cake.schedule(target="{r.choice(HOPPER)}")
def kernel(x: Tensor[f32, "M", "K", {warps}, 32], y: Tensor[f32, "M", {warps}, 32]):
    require(M % {size} == 0, K > 0)
    cluster({size})
    (m,) = grid(M)
    P = smem(f32, ({warps}, 32), stages={buffers})
    work = role(warps={warps})
    with work as u:
        total = 0.0
        for k in range({trip}):
{indented(3, body)}
{indented(2, end)}
        store(y[m, u, lane()], total)
"""


def aliases(r: Random, fault: str | None) -> str:
    """Two buffers share bytes of a pool: the first is done with before the second is written."""
    warps, rows = r.choice([2, 4, 8]), r.choice([1, 2, 3])
    tile = warps * rows
    # Where the buffers overlap in part, the warp that reads may be the one that writes.
    apart = r.choice([0, 0, 128, 256]) if fault is None else 0
    room = tile * 128 + apart
    kind = r.choice(["f32", "i32", "u32"])
    meet = r.choice(["cta_sync()", "role_sync()"])
    trip = r.choice(["M", "M // 2", "6"])
    between, again = [meet], [meet]
    if fault == "no barrier between":
        between = []
    elif fault == "no barrier at the end of a round":
        again = []
    elif fault == "barrier of the warp only":
        between = ["unit_sync()"]
    elif fault == "the pool is too small":
        room -= 128
    elif fault == "the first is read too late":
        between = [meet]
    other = f"(u + {r.randint(1, warps - 1)}) % {warps}"
    put = ["v = load(x[min(k, M - 1), u, lane()])", f"for i in range({rows}):"]
    put.append("    store(A[u * ROWS + i, lane()], v)")
    take = ["first = zero", f"for i in range({rows}):"]
    take.append(f"    first = first + load(A[({other}) * ROWS + i, lane()])")
    swap = [f"for i in range({rows}):", "    store(B[u * ROWS + i, lane()], first)"]
    last = [f"for i in range({rows}):"]
    last.append(f"    store(y[min(k, M - 1), u, lane()], load(B[({other}) * ROWS + i, lane()]))")
    body = [*put, meet, *take, *between, *swap, meet, *last, *again]
    if fault == "the first is read too late":
        body = [*put, meet, *swap, meet, *take, *between, *last, *again]
        body = [line.replace("first)", "zero)") if "store(B" in line else line for line in body]
    lines = [line.replace("ROWS", str(rows)) for line in body]
    zero = "0.0" if kind == "f32" else f"cast(0, {kind})"
    shape = f'Tensor[{kind}, "M", {warps}, 32]'
    return f"""
@cake.schedule(target="{r.choice(["sm_80", "sm_86", "sm_89", "sm_90a"])}")
def kernel(x: {shape}, y: {shape}):
    require(M > 0)
    P = pool({room})
    A = smem({kind}, ({tile}, 32), pool=P, offset={apart})
    B = smem({kind}, ({tile}, 32), pool=P, offset=0)
    all_ = role(warps={warps})
    with all_ as u:
        zero = {zero}
        for k in range({trip}):
{indented(3, lines)}
"""
