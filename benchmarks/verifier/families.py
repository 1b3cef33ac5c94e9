"""Families of generated schedules that synchronise with rings, copies and products.

A family is a function of a random source and a fault. Without a fault its text is right by
construction; a fault leaves out or changes what the construction relies on, so that for some sizes
and some order of events the schedule hangs, races or leaves its bounds. No rule of the verifier is
consulted. Data flow is always complete: what is produced is consumed and stored.
"""

from __future__ import annotations

from random import Random

TRIPS = ("cdiv(K, 32)", "cdiv(K, 32) + 1", "7", "cdiv(K, 64) * 2")
"""Rounds of a loop over K; zero for K = 0, and beyond the tensor (TMA fills with zeros)."""


AT_ONCE = ("use after release", "no release", "release in some rounds")
"""Faults of a consumer that releases in the same round."""


def indented(depth: int, lines: list[str]) -> str:
    """Lines of a block, ``depth`` levels deep."""
    return "\n".join("    " * depth + line for line in lines)


def ring_copy(r: Random, fault: str | None) -> str:
    """TMA fills a ring of tiles; warps copy the tiles to global memory."""
    warps, rows = r.choice([1, 2, 4]), r.choice([1, 2, 4])
    tile, stages = warps * rows, r.choice([1, 2, 3, 4])
    trip, lag = r.choice(TRIPS), r.random() < 0.4
    lag = (lag or fault == "lag without room") and fault not in AT_ONCE
    if lag:
        stages = 1 if fault == "lag without room" else max(stages, 2)
    if fault == "wrong slot":
        stages = max(stages, 2)
    loop, at = r.choice([("for m in tiles:", "tiles"), ("if M > 0:", "grid")])
    head = f"tiles = persistent(cdiv(M, {tile}))" if at == "tiles" else f"m = grid(cdiv(M, {tile}))"
    slot = "0" if fault == "wrong slot" else "s"
    row = f"u * {rows} + i" + (f" + {tile}" if fault == "row beyond the tile" else "")
    guards = [f"m * {tile} + u * {rows} + i < M", "k * 32 + lane() < K"]
    mask = ", mask=" + " and ".join(guards)
    if fault == "no mask":
        mask = ""
    elif fault == "half a mask":
        # With one row a tile, the row needs no guard.
        mask = f", mask={guards[0] if tile == 1 else r.choice(guards)}"
    copy = [
        f"for i in range({rows}):",
        f"    v = load(X[{slot}][{row}, lane()])",
        f"    store(y[m * {tile} + u * {rows} + i, k * 32 + lane()], v{mask})",
        "fence_async()",
    ]
    fills = {"producer fills once more": f"{trip} + 1", "producer stops early": f"{trip} - 1"}
    uses = f"{trip} + 1" if fault == "consumer takes once more" else trip
    return f"""
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", "K"]):
    require(K > 0, K % 4 == 0)
    {head}
    X = smem(f32, ({tile}, 32), stages={stages})
    copier = role(warps=1)
    mover = role(warps={warps})
    ring = pipeline(X, producer=copier, consumer=mover)
    with copier:
        {loop}
            for k in range({fills.get(fault or "", trip)}):
                with ring.fill() as s:
                    tma_load(X[s], x[m * {tile}, k * 32])
    with mover as u:
        {loop}
{indented(3, _consumer(r, fault, lag, uses, copy))}
"""


def _consumer(r: Random, fault: str | None, lag: bool, trip: str, copy: list[str]) -> list[str]:
    """The loop of a ring's consumer, which releases a slot at once or one round later."""
    nested = ["    " + line for line in copy]
    if lag:
        first = ["s = wait(ring)", *(line.replace("k * 32", "0") for line in copy), "last = s"]
        return [
            *first,
            f"for k in range(1, {trip}):",
            "    s = wait(ring)",
            *nested,
            "    release(ring, last)",
            "    last = s",
            "release(ring, last)",
        ]
    loop = f"for k in range({trip}):"
    if fault == "no release":
        return [loop, "    s = wait(ring)", *nested]
    if fault == "use after release":
        return [loop, "    s = wait(ring)", "    release(ring, s)", *nested]
    if fault == "release in some rounds":
        return [loop, "    s = wait(ring)", *nested, "    if k > 0:", "        release(ring, s)"]
    if r.random() < 0.5:
        return [loop, "    s = wait(ring)", *nested, "    release(ring, s)"]
    return [loop, "    with ring.use() as s:", *("    " + line for line in nested)]


def two_rings(r: Random, fault: str | None) -> str:
    """A producer feeds two rings; the consumer adds their tiles."""
    one, two = r.choice([1, 2, 3]), r.choice([1, 2, 3])
    fill_a = ["with a.fill() as s:", "    tma_load(A[s], x[k, 0])"]
    fill_b = ["with b.fill() as t:", "    tma_load(B[t], z[k, 0])"]
    order = [fill_a, fill_b]
    r.shuffle(order)
    loop = "for k in range(M):"
    fills = [loop, *("    " + line for part in order for line in part)]
    if fault == "one ring after the other":
        fills = [line for part in order for line in (loop, *("    " + p for p in part))]
    elif fault == "one ring is filled half":
        part = ["    if k % 2 == 0:", *("        " + line for line in order[1])]
        fills = [loop, *("    " + line for line in order[0]), *part]
    released = ["release(a, s)", "release(b, t)"]
    r.shuffle(released)
    if fault == "one ring is never released":
        released = released[1:]
    waits = ["s = wait(a)", "t = wait(b)"]
    r.shuffle(waits)
    uses = [
        *waits,
        "v = load(A[s][0, lane()]) + load(B[t][0, lane()])",
        "fence_async()",
        *released,
        "store(y[k, lane()], v)",
    ]
    if fault == "released rings are read":
        uses[2:] = [*released, uses[2], uses[3], uses[-1]]
    return f"""
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], z: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    A = smem(f32, (1, 32), stages={one})
    B = smem(f32, (1, 32), stages={two})
    copier = role(warps=1)
    adder = role(warps=1)
    a = pipeline(A, producer=copier, consumer=adder)
    b = pipeline(B, producer=copier, consumer=adder)
    with copier:
{indented(2, fills)}
    with adder:
        for k in range(M):
{indented(3, uses)}
"""


def exchange(r: Random, fault: str | None) -> str:
    """Two roles send each other tiles through rings of plain stores."""
    one, two = r.choice([1, 2, 3]), r.choice([1, 2, 3])
    trip = r.choice(["M", "M // 2 + 1", "5"])
    bound = ", mask=k < M"
    send = ["with there.fill() as s:", "    store(A[s][lane()], load(x[min(k, M - 1), lane()]))"]
    receive = ["with back.use() as t:", f"    store(y[k, lane()], load(B[t][lane()]){bound})"]
    first = [*receive, *send] if fault == "each waits for the other" else [*send, *receive]
    second = [
        "with there.use() as s:",
        "    v = load(A[s][lane()])",
        "with back.fill() as t:",
        "    store(B[t][lane()], v * 2.0)",
    ]
    if fault == "answer is missing":
        second = second[:2]
    if fault == "answer in some rounds":
        second[2:] = ["if k % 2 == 0:", *("    " + line for line in second[2:])]
    more = f"{trip} + 1" if fault == "one asks once more" else trip
    return f"""
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    require(M > 0)
    A = smem(f32, (32,), stages={one})
    B = smem(f32, (32,), stages={two})
    asking = role(warps=1)
    answering = role(warps=1)
    there = pipeline(A, producer=asking, consumer=answering)
    back = pipeline(B, producer=answering, consumer=asking)
    with asking:
        for k in range({more}):
{indented(3, first)}
    with answering:
        v = 0.0
        for k in range({trip}):
{indented(3, second)}
"""


def products(r: Random, fault: str | None) -> str:
    """wgmma on tiles of a ring: slots are released at once, or one product later."""
    stages, lag = r.choice([2, 3, 4]), r.random() < 0.5
    lag = lag and fault not in ("release before the wait", "no wait")
    if fault == "lag without room":
        stages = 1
    lag = lag or fault in ("lag without room", "wrong slot is released")
    start = "2" if fault == "consumer skips a tile" else "1"
    first = ["s = wait(ring)", "wgmma(acc, X[s], X[s].T, init=True)"]
    if fault == "accumulator is not started":
        first[1] = "wgmma(acc, X[s], X[s].T)"
    step = ["s = wait(ring)", "wgmma(acc, X[s], X[s].T)"]
    if lag:
        behind = "s" if fault == "wrong slot is released" else "last"
        body = [*first, "last = s", f"for k in range({start}, KT):"]
        body += ["    " + line for line in (*step, "wgmma_wait(1)", f"release(ring, {behind})")]
        body += ["    last = s", "wgmma_wait(0)", "release(ring, last)"]
        if fault == "result is read in flight":
            body.remove("wgmma_wait(0)")
    else:
        wait = ["wgmma_wait(1)" if fault == "release before the wait" else "wgmma_wait(0)"]
        wait = [] if fault in ("no wait", "result is read in flight") else wait
        end = [*wait, "release(ring, s)"]
        body = [*first, *end, f"for k in range({start}, KT):"]
        body += ["    " + line for line in (*step, *end)]
    return f"""
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[bf16, 64, "K"], y: Tensor[f32, 64, 64]):
    require(K > 0, K % 8 == 0)
    KT = cdiv(K, 64)
    X = smem(bf16, (64, 64), stages={stages}, swizzle=128)
    copier = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, producer=copier, consumer=math)
    with copier:
        for k in range(KT):
            with ring.fill() as s:
                tma_load(X[s], x[0, k * 64])
    with math:
        acc = fragment(f32, (64, 64))
{indented(2, body)}
        store(y[0, 0], acc)
"""
