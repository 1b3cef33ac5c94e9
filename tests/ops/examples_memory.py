"""Examples of memory and synchronisation: atomics, copies, rings, clusters."""

from __future__ import annotations

import numpy as np

from cake.ir.dtypes import F32
from cake.ir.types import Fragment
from cake.ops.values import from_matrix, to_matrix
from tests.ops.example import Arrays, Example, warp, zeros
from tests.ops.schedules import program

# -- memory ----------------------------------------------------------------------------------------

_ATOMICS = """
i = lane()
a = atomic_max(w[i], load(v[i]))
b = atomic_min(w[i + 32], load(v[i]))
c = atomic_exch(n[i], i)
d = atomic_cas(n[i], i, i + 100)
reduce_add(n[32], i)
fence()
store(old[i], c + d)
"""


def _atomics() -> Arrays:
    rng = np.random.default_rng(24)
    v = rng.integers(-5, 6, 32).astype(np.float32)
    v[:3] = [-0.0, 0.0, np.nan]
    w = np.concatenate([v[::-1], -v]).astype(np.float32)
    w[np.isnan(w)] = 1.0
    n = np.arange(33, dtype=np.int32)
    return {"v": v, "w": w, "n": n, "old": zeros(32, dtype=np.int32)}


def _atomics_expected(arrays: Arrays) -> Arrays:
    v, w, n = arrays["v"], arrays["w"].copy(), arrays["n"].copy()
    for half, fold in ((slice(0, 32), np.fmax), (slice(32, 64), np.fmin)):
        w[half] = fold(w[half], v)
    # Zeros are ordered by their sign, which fmax and fmin leave open.
    old, new = arrays["w"], w
    for i in np.nonzero(new == 0)[0]:
        zero = [x for x in (old[i], v[i % 32]) if x == 0]
        signs = [np.signbit(z) for z in zero]
        negative = all(signs) if i < 32 else any(signs)
        new[i] = -0.0 if negative else 0.0
    n[:32] = np.arange(32) + 100
    n[32] += np.arange(32).sum()
    return {"w": new, "n": n, "old": np.arange(32, dtype=np.int32) * 2}


_HALVES = """
i = lane()
q = registers(f32, 8)
for k in static_range(8):
    q[k] = load(x[i, k])
for k in range(3):
    reduce_add(h[i, 0], cast(q, f16))
    reduce_add(h[32, 0], cast(q[0], f16))
a = atomic_add(h[33, i % 8], cast(0.5, f16))
"""


def _halves() -> Arrays:
    x = np.random.default_rng(31).integers(-9, 10, (32, 8)).astype(np.float32)
    return {"x": x, "h": zeros(34, 8, dtype=np.float16)}


def _halves_expected(arrays: Arrays) -> Arrays:
    h = arrays["h"].copy()
    h[:32] = 3 * arrays["x"]
    h[32, 0] = 3 * arrays["x"][:, 0].sum()
    h[33] = 2.0
    return {"h": h}


_BYTES = """
t = thread()
acc = fragment(f32, (64, 32))
own = lanes(acc)
for i in range(16, unroll=True):
    own[i] = load(x[t, i])
store(y[0, 0], cast(acc, i8, round="rn"))
store(z[1, 3], cast(cast(acc, i32), u8, saturate=True))
store(S[0:64], cast(cast(acc, i32), i8))
unit_sync()
for i in range(t, 2048, 128):
    store(w[i // 32, i % 32], load(S[i // 32, i % 32]))
"""


def _bytes() -> Arrays:
    matrix = np.random.default_rng(33).uniform(-300, 300, (64, 32)).astype(np.float32)
    x = from_matrix(Fragment(F32, (64, 32), "acc", 4), matrix)
    return {
        "x": x,
        "y": zeros(64, 32, dtype=np.int8),
        "z": zeros(60, 33, dtype=np.uint8),
        "w": zeros(64, 32, dtype=np.int8),
    }


def _bytes_expected(arrays: Arrays) -> Arrays:
    matrix = to_matrix(Fragment(F32, (64, 32), "acc", 4), arrays["x"])
    whole = np.trunc(matrix).astype(np.int32)
    z = arrays["z"].copy()
    z[1:, 3:] = np.clip(whole, 0, 255)[:59, :30]
    near = np.clip(np.rint(matrix), -128, 127)
    return {"y": near.astype(np.int8), "z": z, "w": whole.astype(np.int8)}


_TILES = """
a = load_tile(x[3, 5], (64, 40))
store(S, a)
unit_sync()
b = load_tile(S[0:64, 0:32])
store(y[0, 0], a)
store(y[64, 1], b)
"""


def _tiles() -> Arrays:
    x = np.random.default_rng(34).standard_normal((66, 43)).astype(np.float32)
    return {"x": x, "y": zeros(128, 41)}


def _tiles_expected(arrays: Arrays) -> Arrays:
    tile = np.zeros((64, 40), np.float32)
    tile[:63, :38] = arrays["x"][3:, 5:]
    y = arrays["y"].copy()
    y[:64, :40] = tile
    y[64:, 1:33] = tile[:, :32]
    return {"y": y}


_COPIES_DECLS = """
S = smem(f32, (16, 32))
H = smem(bf16, (16, 32), swizzle=64)
O = smem(bf16, (16, 32), swizzle=64)
"""
_COPIES = """
cp_async(S, x[0, 0])
cp_async_commit()
cp_async_wait(0)
unit_sync()
for i in range(16):
    store(H[i, lane()], cast(load(S[i, lane()]), bf16))
unit_sync()
a = ldmatrix(H)
stmatrix(O, a)
unit_sync()
for i in range(16):
    store(y[i, lane()], cast(load(O[i, lane()]), f32))
per_row = rows(S[1, 0:16])
per_col = cols(S[2])
store(y[16, 0], per_row + 1.0)
store(y[17, 0], per_col * 2.0)
prefetch(x[0, 0])
"""


def _copies() -> Arrays:
    x = np.random.default_rng(25).integers(-99, 100, (16, 32)).astype(np.float32)
    return {"x": x, "y": zeros(18, 32)}


def _copies_expected(arrays: Arrays) -> Arrays:
    y = arrays["y"].copy()
    y[:16] = arrays["x"]
    y[16, :16] = arrays["x"][1, :16] + 1
    y[17] = arrays["x"][2] * 2
    return {"y": y}


_TMA_DECLS = "X = smem(f32, (8, 32))\nb = barrier(arrivals=1)"
_TMA = """
tma_prefetch(X, x[0, 0])
expect_tx(b, 0, 1024)
tma_load(X, x[4, 0], barrier=b)
arrive(b, 0)
barrier_wait(b, 0, 0)
tma_store(y[2, 0], X)
tma_store_commit()
for i in range(3):
    tma_reduce_add(z[0, 0], X)
tma_store_commit()
tma_store_wait(0, read=False)
"""


ONE_GROUP = _TMA.replace("tma_store_commit()\nfor", "for")
"""Met by a defect of ptxas: docs/design/compiler_defects.md."""


def _tma() -> Arrays:
    x = np.random.default_rng(26).integers(-9, 10, (16, 32)).astype(np.float32)
    return {"x": x, "y": zeros(8, 32), "z": np.ones((8, 32), np.float32)}


def _tma_expected(arrays: Arrays) -> Arrays:
    y = arrays["y"].copy()
    y[2:] = arrays["x"][4:10]
    return {"y": y, "z": 1 + 3 * arrays["x"][4:12]}


def tma(body: str) -> Example:
    """TMA copies of a box that is partly outside, and sums into memory."""
    params = "x: Tensor[f32, 16, 32], y: Tensor[f32, 8, 32], z: Tensor[f32, 8, 32]"
    return Example(make=warp(body, _TMA_DECLS, params=params), arrays=_tma, expected=_tma_expected)


# -- synchronisation -------------------------------------------------------------------------------

_RING_DECLS = """
X = smem(f32, (64,), stages=2)
handed = named_barrier(threads=96)
load_x = role(warps=1)
math = role(warps=2)
xs = pipeline(X, producer=load_x, consumer=math)
"""
_RING = """
with load_x:
    for k in range(4):
        s = acquire(xs)
        bulk_load(X[s], x[k, 0])
        commit(xs, s)
    named_arrive(handed)
with math as u:
    total = var(f32, 0.0)
    for k in range(4):
        s = wait(xs)
        total = total + load(X[s][u * 32 + lane()])
        fence_async()
        release(xs, s)
    named_sync(handed)
    store(y[u, lane()], total)
    role_sync()
    trap(lane() > 31)
"""


def _ring() -> Arrays:
    x = np.random.default_rng(27).integers(-9, 10, (4, 64)).astype(np.float32)
    return {"x": x, "y": zeros(2, 32)}


_CLUSTER = """
pdl_wait()
store(S[lane()], cast(lane() + 100 * cta_rank(), i32))
cluster_sync()
other = load(S[lane()], peer=1 - cta_rank())
store(y[m, lane()], other)
cluster_arrive()
cluster_wait()
pdl_launch()
"""


def _cluster_expected(arrays: Arrays) -> Arrays:
    lanes = np.arange(32)
    return {"y": np.stack([lanes + 100, lanes]).astype(np.int32)}


MEMORY = {
    "atomics": Example(
        make=warp(
            _ATOMICS,
            params="v: Tensor[f32, 32], w: Tensor[f32, 64], "
            "n: Tensor[i32, 33], old: Tensor[i32, 32]",
        ),
        arrays=_atomics,
        expected=_atomics_expected,
    ),
    "bytes": Example(
        make=warp(
            _BYTES,
            "S = smem(i8, (64, 32))",
            params="x: Tensor[f32, 128, 16], y: Tensor[i8, 64, 32], z: Tensor[u8, 60, 33], "
            "w: Tensor[i8, 64, 32]",
            role="warpgroups=1",
        ),
        arrays=_bytes,
        expected=_bytes_expected,
    ),
    "tiles": Example(
        make=warp(
            _TILES,
            "S = smem(f32, (64, 40))",
            params="x: Tensor[f32, 66, 43], y: Tensor[f32, 128, 41]",
            role="warpgroups=1",
        ),
        arrays=_tiles,
        expected=_tiles_expected,
    ),
    "halves": Example(
        make=warp(_HALVES, params="x: Tensor[f32, 32, 8], h: Tensor[f16, 34, 8]"),
        arrays=_halves,
        expected=_halves_expected,
    ),
    "copies": Example(
        make=warp(_COPIES, _COPIES_DECLS, params="x: Tensor[f32, 16, 32], y: Tensor[f32, 18, 32]"),
        arrays=_copies,
        expected=_copies_expected,
    ),
    "tma": tma(_TMA),
    "ring": Example(
        make=lambda: program(
            _RING, _RING_DECLS, params="x: Tensor[f32, 4, 64], y: Tensor[f32, 2, 32]"
        ),
        arrays=_ring,
        expected=lambda arrays: {"y": arrays["x"].sum(0).reshape(2, 32)},
    ),
    "cluster": Example(
        make=warp(
            _CLUSTER,
            "S = smem(i32, (32,))\ncluster(2)\nlaunch(pdl=True)\nm = grid(2)",
            params="y: Tensor[i32, 2, 32]",
        ),
        arrays=lambda: {"y": zeros(2, 32, dtype=np.int32)},
        expected=_cluster_expected,
    ),
}
