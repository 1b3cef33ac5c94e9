"""Right schedules with ways to break them, and what the simulator says to each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

ALL = ("early", "late", "early-land", "late-newest", "random")
LATE = ("late", "late-newest")


@dataclass(frozen=True, slots=True, kw_only=True)
class Hazard:
    """``good`` with ``old`` replaced by ``new`` has a finding ``code`` at the line with ``at``.

    ``orders`` are those that show it; ``related``: part of a line that the finding refers to.
    """

    name: str
    good: str
    old: str
    new: str
    code: str
    at: str
    says: str = ""
    related: str = ""
    orders: Sequence[str] = ALL
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def bad(self) -> str:
        assert self.good.count(self.old) == 1, f"{self.name}: {self.good.count(self.old)} places"
        return self.good.replace(self.old, self.new)


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

HAZARDS = (
    Hazard(
        name="released before its last read",
        good=RING,
        old="        wgmma_wait(0)\n        release(ring, s)\n",
        new="        release(ring, s)\n        wgmma_wait(0)\n",
        code="CK501",
        at="wgmma(acc",
        related="release(ring, s)",
        says="released",
        orders=LATE,
    ),
    Hazard(
        name="read without waiting for the slot",
        good=RING.replace("range(5)", "range(1)"),
        old="s = wait(ring)\n        wgmma(acc, X[s], X[s].T)\n        wgmma_wait(0)\n",
        new="wgmma(acc, X[0], X[0].T)\n        wgmma_wait(0)\n        s = wait(ring)\n",
        code="CK501",
        at="wgmma(acc",
        related="tma_load(X[s]",
        says="the copy that brings it has not completed",
        orders=LATE,
    ),
    Hazard(
        name="accumulator read in flight",
        good=RING,
        old="        wgmma_wait(0)\n        release(ring, s)\n    store",
        new="        release(ring, s)\n    store",
        code="CK506",
        at="store(y",
        related="wgmma(acc",
        orders=("early",),
    ),
    Hazard(
        name="no proxy fence",
        good=FENCED,
        old="    fence_async()\n",
        new="",
        code="CK504",
        at="tma_store(y",
        related="store(S",
    ),
    Hazard(
        name="one thread fences for all",
        good=FENCED,
        old="    fence_async()\n",
        new="    if thread() == 0:\n        fence_async()\n",
        code="CK504",
        at="tma_store(y",
        related="store(S",
    ),
    Hazard(
        name="no barrier after the proxy fence",
        good=FENCED,
        old="    unit_sync()\n",
        new="",
        code="CK515",
        at="tma_store(y",
        related="store(S",
    ),
    Hazard(
        name="barrier before the proxy fence",
        good=FENCED,
        old="    fence_async()\n    unit_sync()\n",
        new="    unit_sync()\n    fence_async()\n",
        code="CK515",
        at="tma_store(y",
    ),
    Hazard(
        name="role ends while a TMA store reads",
        good=FENCED,
        old="    tma_store_wait(0)\n",
        new="",
        code="CK508",
        at="tma_store(y",
    ),
    Hazard(
        name="threads of a unit exchange without a barrier",
        good=CROSS,
        old="    unit_sync()\n",
        new="",
        code="CK514",
        at="w = load(S",
        related="store(S",
    ),
    Hazard(
        name="warps exchange without a barrier",
        good=BLOCK,
        old="    cta_sync()\n",
        new="    unit_sync()\n",
        code="CK501",
        at="total = load(S",
        related="store(S[u]",
        orders=("late", "late-newest", "early-land"),
    ),
    Hazard(
        name="a warp reads what another has not handed over",
        good=BLOCK,
        old="    cta_sync()\n    total",
        new="    while load(S[0]) + load(S[1]) + load(S[2]) + load(S[3]) < 4.0:\n"
        "        pass\n    total",
        code="CK514",
        at="while load(S",
        related="store(S",
        orders=("early",),
    ),
    Hazard(
        name="bulk copy not waited for",
        good=RAW,
        old="    barrier_wait(full, 0, 0)\n",
        new="",
        code="CK501",
        at="load(S[lane()",
        related="bulk_load(S",
        says="has not completed",
        orders=LATE,
    ),
    Hazard(
        name="copy in flight at the end",
        good=RAW,
        old="    barrier_wait(full, 0, 0)\n    store(v[lane()], load(S[lane() + 32]))\n",
        new="",
        code="CK508",
        at="bulk_load(S",
        orders=LATE,
    ),
    Hazard(
        name="too few bytes expected",
        good=RAW,
        old="512)",
        new="256)",
        code="CK505",
        at="barrier_wait",
        says="256 bytes more than expected",
    ),
    Hazard(
        name="too many bytes expected",
        good=RAW,
        old="512)",
        new="768)",
        code="CK505",
        at="barrier_wait",
        related="arrive(full, 0)",
        says="0 of 1 arrivals due, 256 bytes due",
    ),
    Hazard(
        name="more bytes than a barrier counts",
        good=RAW,
        old="    expect_tx(full, 0, 512)\n",
        new="    expect_tx(full, 0, 1048575)\n    expect_tx(full, 0, 512)\n",
        code="CK507",
        at="expect_tx(full, 0, 512)",
        says="the limit is 1048575",
    ),
    Hazard(
        name="more arrivals than a barrier counts",
        good=RAW.replace("arrivals=1", "arrivals=2").replace(
            "    arrive(full, 0)\n", "    arrive(full, 0)\n    arrive(full, 0)\n"
        ),
        old="    arrive(full, 0)\n    arrive(full, 0)\n",
        new="    arrive(full, 0)\n    arrive(full, 0, 2)\n",
        code="CK507",
        at="arrive(full, 0, 2)",
        related="arrive(full, 0)",
        says="more than 2 arrivals in phase 0",
    ),
    Hazard(
        name="the wrong group is awaited",
        good=GROUPS,
        old="    cp_async_wait(0)\n    unit_sync()\n    b =",
        new="    b =",
        code="CK501",
        at="b = ldmatrix",
        related="cp_async(S[1]",
        orders=LATE,
    ),
    Hazard(
        name="a later group does not imply an earlier one",
        good=GROUPS,
        old="cp_async_commit()\n    cp_async(S[1], x[0, 0])\n    cp_async_commit()",
        new="cp_async(S[1], x[0, 0])\n    cp_async_commit()",
        code="CK501",
        at="a = ldmatrix",
        related="cp_async(S[0]",
        orders=LATE,
    ),
    Hazard(
        name="cp.async in flight at the end",
        good=GROUPS,
        old="    cp_async_wait(0)\n    unit_sync()\n    b = ldmatrix(S[1][0:16, 0:16])\n",
        new="    b = a\n",
        code="CK508",
        at="cp_async(S[1]",
    ),
    Hazard(
        name="an alias of an accumulator in flight",
        good=PRODUCT,
        old="        wgmma_wait(0)\n    r[0] = r[0] + 1.0\n",
        new="        q = r[0]\n        wgmma_wait(0)\n        r[0] = q\n",
        code="CK506",
        at="q = r[0]",
        related="wgmma(acc",
    ),
    Hazard(
        name="an accumulator is overwritten in flight",
        good=PRODUCT,
        old="        wgmma_wait(0)\n    r[0]",
        new="        r[1] = 2.0\n        wgmma_wait(0)\n    r[0]",
        code="CK506",
        at="r[1] = 2.0",
        related="wgmma(acc",
    ),
    Hazard(
        name="an operand in registers is overwritten in flight",
        good=PRODUCT,
        old="        wgmma_wait(0)\n",
        new="        left = left\n        left = cast(fragment(f32, (64, 64), fill=1.0), bf16)\n"
        "        wgmma_wait(0)\n",
        code="CK506",
        at="left = left",
        related="wgmma(acc",
        says="while wgmma reads it",
    ),
    Hazard(
        name="wgmma in flight at the end",
        good=PRODUCT,
        old="        wgmma_wait(0)\n    r[0] = r[0] + 1.0\n    store(y[0, 0], acc)\n",
        new="",
        code="CK508",
        at="wgmma(acc",
        orders=("early", "early-land"),
    ),
    Hazard(
        name="a product added to nothing",
        good=PRODUCT,
        old="init=True",
        new="init=False",
        code="CK513",
        at="wgmma(acc",
        related="acc = fragment",
    ),
    Hazard(
        name="a register that was never written",
        good=PRODUCT,
        old="    with ring.use() as s:\n",
        new="    q = r[0]\n    with ring.use() as s:\n",
        code="CK513",
        at="q = r[0]",
        related="acc = fragment",
    ),
    Hazard(
        name="a peer's store without a cluster barrier",
        good=CLUSTER,
        old="    cluster_arrive()\n    cluster_wait()\n",
        new="",
        code="CK514",
        at="other = load(S",
        related="store(S",
        orders=("early",),
    ),
    Hazard(
        name="cluster arrival twice",
        good=CLUSTER,
        old="    cluster_wait()\n",
        new="    cluster_arrive()  # again\n",
        code="CK516",
        at="# again",
        says="twice",
    ),
    Hazard(
        name="cluster wait without an arrival",
        good=CLUSTER,
        old="    cluster_arrive()\n",
        new="",
        code="CK516",
        at="cluster_wait()",
    ),
    Hazard(
        name="a peer outside the cluster",
        good=CLUSTER,
        old="peer=1 - b",
        new="peer=2 - b",
        code="CK502",
        at="other = load(S",
        says="outside the cluster of 2",
    ),
    Hazard(
        name="shared memory out of bounds",
        good=BOUNDS,
        old="mask=t < 127",
        new="mask=t < 128",
        code="CK502",
        at="a = load(S",
        says="index 128 is outside axis 0 of S, extent 128",
    ),
    Hazard(
        name="a stage that does not exist",
        good=BOUNDS,
        old="last = load(c[0]) + 1",
        new="last = load(c[0]) + 2",
        code="CK502",
        at="store(T[last",
        says="stage 2 of T is outside its 2 stages",
    ),
    Hazard(
        name="global memory out of bounds",
        good=BOUNDS,
        old="mask=t > 0",
        new="mask=t >= 0",
        code="CK503",
        at="b = load(v",
        says="v has shape (128,), accessed at (-1,)",
    ),
    Hazard(
        name="a register outside its array",
        good=BOUNDS,
        old="if lane() < 4:",
        new="if lane() < 5:",
        code="CK512",
        at="r[lane()] =",
        says="register 4 is outside an array of 4",
    ),
    Hazard(
        name="a tile beyond its buffer",
        good=BOUNDS,
        old="low = load(c[0]) + 64",
        new="low = load(c[0]) + 65",
        code="CK502",
        at="tma_store(y",
        says="index 128 is outside axis 0 of U, extent 128",
    ),
    Hazard(
        name="an output read before it is written",
        good=OUTPUTS,
        old="n = load(c[0])",
        new="n = load(c[1])",
        code="CK509",
        at="n = load(c[1])",
        related="store(c[0], 1)",
        says="c is read at (1,)",
        options={"outputs": ("c",)},
    ),
    Hazard(
        name="an output updated before it is written",
        good=OUTPUTS,
        old="reduce_add(c[0], 1)",
        new="reduce_add(c[2], 1)",
        code="CK509",
        at="reduce_add(c[2]",
        says="c is updated at (2,)",
        options={"outputs": ("c",)},
    ),
    Hazard(
        name="a workspace read before it is written",
        good=OUTPUTS,
        old="store(w[lane()], 7)",
        new="store(w[lane() // 2], 7)",
        code="CK509",
        at="m = load(w",
        related="store(w[lane() // 2]",
        says="w is read at (16,)",
    ),
    Hazard(
        name="a zeroed workspace that is left dirty",
        good=OUTPUTS,
        old="store(flags[0], 0)",
        new="store(flags[1], 0)",
        code="CK519",
        at="flags = workspace",
        says="workspace flags is not zero at (0,)",
    ),
    Hazard(
        name="memory read before the TMA store into it is complete",
        good=STORED,
        old="tma_store_wait(0, read=False)",
        new="tma_store_wait(0)",
        code="CK509",
        at="w = load(y",
        says="the copy that brings it has not completed",
        related="tma_store(y",
        orders=LATE,
        options={"outputs": ("y",)},
    ),
    Hazard(
        name="part of a unit at a barrier of all",
        good=CROSS,
        old="    unit_sync()\n",
        new="    if thread() < 96:\n        unit_sync()\n",
        code="CK517",
        at="        unit_sync()",
        says="96 of 128 threads reach unit_sync",
    ),
    Hazard(
        name="a flag that nobody sets",
        good=FLAG,
        old='        atomic_exch(flag[0], 1, order="release")\n',
        new="        pass\n",
        code="CK505",
        at="while load(flag",
        says="goes round a while loop",
        options={"concurrent": True},
    ),
    Hazard(
        name="a flag set after data that are not stored yet",
        good=FLAG,
        old='store(y[0, lane()], 3.0)\n        atomic_exch(flag[0], 1, order="release")\n',
        new='atomic_exch(flag[0], 1, order="release")\n        store(y[0, lane()], 3.0)\n',
        code="CK509",
        at="got = load(y",
        orders=("late",),
        options={"concurrent": True, "outputs": ("y",), "reverse": True},
    ),
    Hazard(
        name="one store with two values for one place in shared memory",
        good=CROSS,
        old="store(S[thread()], load(v[thread()]))",
        new="store(S[thread() % 64 + thread() // 64 * 63], load(v[thread()]))",
        code="CK593",
        at="store(S[thread() %",
        says="one element of S",
    ),
    Hazard(
        name="one store with two values for one place in global memory",
        good=CROSS,
        old="store(v[thread()], w)",
        new="store(v[thread() // 2], w)",
        code="CK593",
        at="store(v[thread() //",
        says="one element of v",
    ),
    Hazard(
        name="a thread overwrites what another may still be reading",
        good=EXCHANGE,
        old="    w = load(S[127 - thread()])\n    unit_sync()\n",
        new="    w = load(S[127 - thread()])\n",
        code="CK514",
        at="store(S[thread()], w)",
        says="was read by thread",
        related="w = load(S",
    ),
    Hazard(
        name="warps store different values to one place",
        good=BLOCK,
        old="store(S[u], 1.0)",
        new="store(S[0], cast(u, f32))",
        code="CK514",
        at="store(S[0]",
        says="stores another value with no barrier in between",
        related="store(S[0]",
    ),
    Hazard(
        name="threads of a warp store different values to one place one after another",
        good=EXCHANGE,
        old="    if thread() == 0:\n        store(S[0], 5.0)\n",
        new="    if thread() == 0:\n        store(S[0], 5.0)\n"
        "    if thread() == 1:\n        store(S[0], 6.0)\n",
        code="CK514",
        at="store(S[0], 6.0)",
        says="was stored to by thread 0 of CTA 0 role math[0]",
        related="store(S[0], 5.0)",
    ),
    Hazard(
        name="a warp arrives and does not wait before it reads what another has stored",
        good=PASSED,
        old="        barrier_wait(met, 0, 0)\n",
        new="",
        code="CK514",
        at="got = load(S",
        says="another thread of CTA 0 role math[1] reads it",
        related="store(S[lane()], 3.0)",
        orders=("late", "reversed"),
    ),
    Hazard(
        name="one thread overwrites what all have read",
        good=EXCHANGE,
        old="    first = load(S[0])\n    unit_sync()\n",
        new="    first = load(S[0])\n",
        code="CK514",
        at="store(S[0], 5.0)",
        says="was read by CTA 0 role math[0]",
    ),
    Hazard(
        name="all warps of a unit update one element",
        good=EXCHANGE,
        old="    if thread() == 0:\n        store(S[0], 5.0)\n",
        new="    store(S[0], load(S[0]) + 5.0)\n",
        code="CK514",
        at="store(S[0], load(S[0]) + 5.0)",
        says="was read by CTA 0 role math[0]",
    ),
)
