"""Families of generated schedules that synchronise with barriers, groups of copies and bounds."""

from __future__ import annotations

from random import Random

from benchmarks.verifier.families import indented


def async_copies(r: Random, fault: str | None) -> str:
    """Every warp copies its rows some rounds ahead; all warps read all rows."""
    warps, rows, stages = r.choice([2, 4]), r.choice([1, 2]), r.choice([2, 3, 4])
    tile, ahead = warps * rows, r.choice([stages - 1, stages, max(stages - 2, 1)])
    second = ahead == stages
    if fault == "overwrites what others read":
        ahead, second = stages, False
    left = ahead if fault == "waits for too few" else ahead - 1
    copy = "cp_async(X[{s}][u * {rows} : u * {rows} + {rows}], x[m * {tile} + u * {rows}, {k}])"
    early = copy.format(s="p", rows=rows, tile=tile, k="p * 32")
    late = copy.format(s=f"(k + {ahead}) % {stages}", rows=rows, tile=tile, k=f"(k + {ahead}) * 32")
    reach = "unit_sync()" if fault == "barrier of the warp only" else "cta_sync()"
    body = [
        f"cp_async_wait({left})",
        *([] if fault == "no barrier" else [reach]),
        f"for i in static_range({tile}):",
        f"    total = total + load(X[k % {stages}][i, lane()])",
        *(["cta_sync()"] if second else []),
        late,
        *([] if fault == "no commit" else ["cp_async_commit()"]),
    ]
    if fault == "barrier before the wait":
        body[0], body[1] = body[1], body[0]
    return f"""
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "K"], y: Tensor[f32, "B", {warps}, 32]):
    require(B == cdiv(M, {tile}), K % 4 == 0)
    m = grid(cdiv(M, {tile}))
    X = smem(f32, ({tile}, 32), stages={stages})
    all_ = role(warps={warps})
    with all_ as u:
        for p in static_range({ahead}):
            {early}
            cp_async_commit()
        total = 0.0
        for k in range(cdiv(K, 32)):
{indented(3, body)}
        cp_async_wait(0)
        store(y[m, u, lane()], total)
"""


def neighbours(r: Random, fault: str | None) -> str:
    """Warps read what their neighbours stored, through one or several buffers."""
    warps, buffers = r.choice([2, 3, 4, 8]), r.choice([1, 2, 3])
    if fault == "no second barrier":
        buffers = 1
    kind = r.choice(["cta_sync()", "role_sync()", "named_sync(all_met)"])
    threads = warps * 32
    if fault == "barrier expects more":
        kind, threads = "named_sync(all_met)", threads + 32
    index = f"k % {buffers}"
    other = "u + 1" if fault == "neighbour beyond the last" else f"(u + 1) % {warps}"
    meet = [kind]
    if fault == "no first barrier":
        meet = []
    elif fault == "some warps meet":
        meet = ["if u > 0:", "    cta_sync()"]
    body = [
        f"store(S[{index}][u, lane()], load(x[k, u, lane()]))",
        *meet,
        f"store(y[k, u, lane()], load(S[{index}][{other}, lane()]))",
        *([kind] if buffers == 1 and fault != "no second barrier" else []),
    ]
    named = [f"all_met = named_barrier(threads={threads})"] if "named" in kind else []
    return f"""
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", {warps}, 32], y: Tensor[f32, "M", {warps}, 32]):
    S = smem(f32, ({warps}, 32), stages={buffers})
{indented(1, named)}
    all_ = role(warps={warps})
    with all_ as u:
        for k in range(M):
{indented(3, body)}
"""


def bulk_stores(r: Random, fault: str | None) -> str:
    """Each warp writes tiles to shared memory and sends them away by TMA, some at a time."""
    warps, buffers, rows = r.choice([1, 2, 4]), r.choice([1, 2, 3]), r.choice([1, 4, 8])
    free = buffers if fault == "waits for too few" else buffers - 1
    tile = f"E[u * {buffers} + k % {buffers}]"
    ready = ["fence_async()", "unit_sync()"]
    if fault == "no fence":
        ready = ready[1:]
    elif fault == "no barrier":
        ready = ready[:1]
    body = [
        f"tma_store_wait({free})",
        "unit_sync()",
        f"for i in static_range({rows}):",
        f"    store({tile}[i, lane()], cast(k + i, f32))",
        *ready,
        f"tma_store(y[(k * {warps} + u) * {rows}, 0], {tile})",
        *([] if fault == "no commit" else ["tma_store_commit()"]),
    ]
    end = "" if fault == "no wait at the end" else "tma_store_wait(0)"
    return f"""
@cake.schedule(target="sm_90a")
def kernel(y: Tensor[f32, "M", 32]):
    E = smem(f32, ({rows}, 32), stages={buffers * warps})
    all_ = role(warps={warps})
    with all_ as u:
        for k in range(cdiv(M, {rows * warps})):
{indented(3, body)}
        {end}
"""


def bounded(r: Random, fault: str | None) -> str:
    """Rows over the grid and over warps, columns over lanes, by vectors of some width."""
    warps, width = r.choice([1, 2, 4, 8]), r.choice([1, 2, 4])
    if fault in ("row == M passes", "no row mask", "rows of two CTAs overlap"):
        warps = max(warps, 2)
    if fault == "rows of two CTAs overlap":
        width = 1
    if fault == "vector is not aligned":
        width = 4
    aligned = width > 1 and fault != "vector is not aligned"
    guard = f"require(K % {width} == 0)" if aligned else "require(K > 0)"
    row = f"m * {warps // 2 if fault == 'rows of two CTAs overlap' else warps} + u"
    inside = {"row == M passes": f"{row} <= M", "no row mask": "K > 0"}
    last = "K + 1" if fault == "one column too many" else "K"
    load = f"load(x[{row}, d], width={width})" if width > 1 else f"load(x[{row}, d])"
    # The value names the CTA: equal values stored twice would be harmless.
    named = " + cast(m, f32)" if width == 1 else ""
    return f"""
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", "K"], y: Tensor[f32, "M", "K"]):
    {guard}
    m = grid(cdiv(M, {warps}))
    all_ = role(warps={warps})
    with all_ as u:
        if {inside.get(fault or "", f"{row} < M")}:
            for d in range(lane() * {width}, {last}, {32 * width}):
                v = {load}
                store(y[{row}, d], v{named})
"""


def turns(r: Random, fault: str | None) -> str:
    """Warps take turns through named barriers, one slot each."""
    warps = r.choice([2, 3, 4])
    if fault in ("all begin", "all wait for one slot"):
        warps = r.choice([2, 4])  # with three warps the counts happen to work out
    trip = r.choice(["M", "3", "cdiv(M, 2)"])
    start = [f"if u == {warps - 1}:", "    named_arrive(turn, 0)"]
    if fault == "nobody begins":
        start = []
    elif fault == "all begin":
        start = ["named_arrive(turn, 0)"]
    follow = f"named_arrive(turn, (u + 1) % {warps})"
    if fault == "turn is not passed on":
        follow = "nanosleep(20)"
    elif fault == "turn goes to the same warp":
        follow = "named_arrive(turn, u)"
    sync = "named_sync(turn, u)"
    if fault == "all wait for one slot":
        sync = "named_sync(turn, 0)"
    threads = 96 if fault == "barrier expects more" else 64
    return f"""
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", {warps}, 32], y: Tensor[f32, "M", {warps}, 32]):
    require(M > 0)
    turn = named_barrier(threads={threads}, slots={warps})
    all_ = role(warps={warps})
    with all_ as u:
{indented(2, start)}
        for k in range({trip}):
            {sync}
            store(y[min(k, M - 1), u, lane()], load(x[min(k, M - 1), u, lane()]))
            {follow}
        if u == 0:
            named_sync(turn, 0)
"""
