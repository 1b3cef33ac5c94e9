"""Small programs that exercise primitives: simulated and built in test_registry.py, and run on a
GPU by test_registry_gpu.py. Arrays have element types that every array library knows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.dtypes import F32
from cake.ir.program import Program
from cake.ir.types import Fragment
from cake.ops import elementwise_bits as bits
from cake.ops.values import from_matrix, to_matrix
from tests.ops import (
    test_column_folds,
    test_machine_state,
    test_scans,
    test_tickets,
    test_transpose,
)
from tests.ops.schedules import accepted, program

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A program with its arrays. ``expected``: arrays by name after the run, from those before.

    ``tolerance``: relative error allowed between simulator and GPU, 0 asks for equal bits.
    ``free`` names arrays whose contents depend on the order of threads.
    """

    make: Callable[[], Program]
    arrays: Callable[[], Arrays]
    expected: Callable[[Arrays], Arrays]
    tolerance: float = 0.0
    free: tuple[str, ...] = ()


def warp(body: str, decls: str = "", *, params: str, role: str = "warps=1") -> Any:
    """A one-role program for sm_90a, made when it is asked for."""
    return lambda: accepted(body, decls, role=role, params=params)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)


# -- elementwise -----------------------------------------------------------------------------------

_INT = [
    "popc(a)",
    "clz(a)",
    "brev(a)",
    "mulhi(a, b)",
    "a << (b & 7)",
    "cast(byte_perm(bitcast(a, u32), bitcast(b, u32), bitcast(a ^ b, u32)), i32)",
    "cast(funnel_left(bitcast(a, u32), bitcast(b, u32), bitcast(b, u32)), i32)",
    "cast(funnel_right(bitcast(a, u32), bitcast(b, u32), bitcast(b, u32)), i32)",
    "cast(mul_wide(a, b) >> 20, i32)",
    "cast(mulhi(mul_wide(a, b), mul_wide(b, b)), i32)",
    "cast(a >= b, i32) + cast(a <= 0, i32) * 2 + cast(a != 5, i32) * 4",
    "cast(not (a > b), i32) + cast(a < 0 or b < 0, i32) * 2",
    "cast(cast(a, i8), i32) + cast(cast(b, u8, saturate=True), i32)",
]


def _integers() -> Arrays:
    rng = np.random.default_rng(21)
    x = rng.integers(-(2**31), 2**31 - 1, (2, 32)).astype(np.int32)
    x[:, :3] = [[0, -1, 5], [1, -(2**31), 7]]
    return {"x": x, "y": zeros(len(_INT), 32, dtype=np.int32)}


def _integers_expected(arrays: Arrays) -> Arrays:
    a, b = arrays["x"]
    u, v = a.view(np.uint32), b.view(np.uint32)
    wide = bits.mul_wide(a, b)
    rows = [
        bits.popc(a),
        bits.clz(a),
        bits.brev(a),
        (a.astype(np.int64) * b) >> 32,
        a << (b & 7),
        bits.byte_perm(u, v, u ^ v).view(np.int32),
        bits.funnel_left(u, v, v).view(np.int32),
        bits.funnel_right(u, v, v).view(np.int32),
        wide >> 20,
        bits.mulhi(wide, bits.mul_wide(b, b)),
        (a >= b) + (a <= 0) * 2 + (a != 5) * 4,
        ~(a > b) + ((a < 0) | (b < 0)) * 2,
        a.astype(np.int8).astype(np.int32) + np.clip(b, 0, 255),
    ]
    return {"y": np.stack([np.asarray(r).astype(np.int64).astype(np.int32) for r in rows])}


def _each(lines: list[str]) -> str:
    stores = "\n".join(f"store(y[{k}, lane()], {line})" for k, line in enumerate(lines))
    return f"a = load(x[0, lane()])\nb = load(x[1, lane()])\n{stores}"


_FLOAT = ["rint(a)", "trunc(a)", "cast(cast(a, i32, round=\"rn\"), f32)",
          "cast(cast(a, bf16, round=\"rz\"), f32)", "cast(cast(a, i8), f32)"]  # fmt: skip
_MATHS = ["sin(b)", "cos(b)", "sigmoid(b)"]


def _floats(rows: int) -> Callable[[], Arrays]:
    def make() -> Arrays:
        rng = np.random.default_rng(22)
        x = np.stack([rng.uniform(-200, 200, 32), rng.uniform(-6, 6, 32)]).astype(np.float32)
        x[0, :4] = [0.5, -0.5, 2.5, 1e9]
        return {"x": x, "y": zeros(rows, 32)}

    return make


def _floats_expected(arrays: Arrays) -> Arrays:
    a = arrays["x"][0]
    chopped = (a.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    near = np.clip(np.rint(a.astype(np.float64)), -(2.0**31), 2.0**31 - 1).astype(np.int32)
    byte = np.clip(np.trunc(a), -128, 127).astype(np.int8)
    return {"y": np.stack([np.rint(a), np.trunc(a), near.astype(np.float32), chopped, byte])}


def _maths_expected(arrays: Arrays) -> Arrays:
    b = arrays["x"][1].astype(np.float64)
    return {"y": np.stack([np.sin(b), np.cos(b), 1 / (1 + np.exp(-b))])}


# -- folds -----------------------------------------------------------------------------------------

_ARGMAX = """
acc = fragment(f32, (16, 32))
own = lanes(acc)
for i in range(16, unroll=True):
    own[i] = load(x[lane(), i])
best = row_vector(f32, 16, fill=-inf, partial=True)
arg = row_vector(i32, 16, fill=-1, partial=True)
best, arg = argmax_cols(acc, best, arg)
top, where = argmax_quad(best, arg)
store(y[0, 0], top)
store(at[0, 0], where + row_index(16))
cbest = col_vector(f32, 32, fill=-inf, partial=True)
carg = col_vector(i32, 32, fill=-1, partial=True)
cbest, carg = argmax_rows(acc, cbest, carg)
ctop, cwhere = argmax_octet(cbest, carg)
store(y[1, 0], ctop)
store(at[1, 0], cwhere + col_index(32))
store(y[2, 0], columns(acc, 8, 16))
"""


def _argmax() -> Arrays:
    matrix = np.random.default_rng(23).integers(-9, 10, (16, 32)).astype(np.float32)
    x = from_matrix(Fragment(F32, (16, 32), "acc", 1), matrix)
    return {"x": x, "y": zeros(18, 32), "at": zeros(2, 32, dtype=np.int32)}


def _argmax_expected(arrays: Arrays) -> Arrays:
    matrix = to_matrix(Fragment(F32, (16, 32), "acc", 1), arrays["x"])
    y, at = arrays["y"].copy(), arrays["at"].copy()
    y[0, :16], at[0, :16] = matrix.max(1), matrix.argmax(1) + np.arange(16)
    y[1], at[1] = matrix.max(0), matrix.argmax(0) + np.arange(32)
    y[2:, :16] = matrix[:, 8:24]
    return {"y": y, "at": at}


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
for i in range(3):
    tma_reduce_add(z[0, 0], X)
tma_store_commit()
tma_store_wait(0, read=False)
"""


def _tma() -> Arrays:
    x = np.random.default_rng(26).integers(-9, 10, (16, 32)).astype(np.float32)
    return {"x": x, "y": zeros(8, 32), "z": np.ones((8, 32), np.float32)}


def _tma_expected(arrays: Arrays) -> Arrays:
    y = arrays["y"].copy()
    y[2:] = arrays["x"][4:10]
    return {"y": y, "z": 1 + 3 * arrays["x"][4:12]}


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


# -- the table -------------------------------------------------------------------------------------


def _scanned() -> Arrays:
    x = np.random.default_rng(28).integers(-(2**20), 2**20, (128, 48)).astype(np.int32)
    return {"x": x, "y": zeros(4, 128, 32, dtype=np.int32)}


def _chain() -> Arrays:
    x = np.random.default_rng(29).integers(-4, 5, (32, 16)).astype(np.float32)
    return {"x": x, "y": zeros(4, 32, 32)}


def _folded() -> Arrays:
    x = np.random.default_rng(30).standard_normal((128, 32)).astype(np.float32)
    return {"x": x, "y": zeros(4, 32), "at": zeros(32, dtype=np.int32)}


def _unchecked(arrays: Arrays) -> Arrays:
    """Values are checked where the program comes from."""
    return {}


EXAMPLES = {
    "integers": Example(
        make=warp(_each(_INT), params=f"x: Tensor[i32, 2, 32], y: Tensor[i32, {len(_INT)}, 32]"),
        arrays=_integers,
        expected=_integers_expected,
    ),
    "floats": Example(
        make=warp(
            _each(_FLOAT), params=f"x: Tensor[f32, 2, 32], y: Tensor[f32, {len(_FLOAT)}, 32]"
        ),
        arrays=_floats(len(_FLOAT)),
        expected=_floats_expected,
    ),
    "maths": Example(
        make=warp(
            _each(_MATHS), params=f"x: Tensor[f32, 2, 32], y: Tensor[f32, {len(_MATHS)}, 32]"
        ),
        arrays=_floats(len(_MATHS)),
        expected=_maths_expected,
        tolerance=2e-6,
    ),
    "argmax": Example(
        make=warp(
            _ARGMAX, params="x: Tensor[f32, 32, 16], y: Tensor[f32, 18, 32], at: Tensor[i32, 2, 32]"
        ),
        arrays=_argmax,
        expected=_argmax_expected,
    ),
    "atomics": Example(
        make=warp(
            _ATOMICS,
            params="v: Tensor[f32, 32], w: Tensor[f32, 64], "
            "n: Tensor[i32, 33], old: Tensor[i32, 32]",
        ),
        arrays=_atomics,
        expected=_atomics_expected,
    ),
    "copies": Example(
        make=warp(_COPIES, _COPIES_DECLS, params="x: Tensor[f32, 16, 32], y: Tensor[f32, 18, 32]"),
        arrays=_copies,
        expected=_copies_expected,
    ),
    "tma": Example(
        make=warp(
            _TMA,
            _TMA_DECLS,
            params="x: Tensor[f32, 16, 32], y: Tensor[f32, 8, 32], z: Tensor[f32, 8, 32]",
        ),
        arrays=_tma,
        expected=_tma_expected,
    ),
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
    "scans": Example(make=lambda: test_scans.scans(64, 128), arrays=_scanned, expected=_unchecked),
    "scans of registers": Example(
        make=warp(test_scans.REGISTERS, params=test_scans.PARAMS, role="warpgroups=1"),
        arrays=_scanned,
        expected=_unchecked,
    ),
    "column folds": Example(
        make=lambda: test_column_folds.folds(64, 128), arrays=_folded, expected=_unchecked
    ),
    "transposes": Example(
        make=warp(test_transpose.CHAIN, params=test_transpose.PARAMS),
        arrays=_chain,
        expected=_unchecked,
    ),
    "tickets": Example(
        make=lambda: program(test_tickets.ROLES, test_tickets.DECLS, params=test_tickets.PARAMS),
        arrays=lambda: test_tickets.tensors(42),
        expected=lambda arrays: {"y": 2 * arrays["x"]},
        free=("who",),
    ),
    "place": Example(
        make=warp(test_machine_state.PLACE, "b = grid(4)", params=test_machine_state.PARAMS),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
        free=("y", "t"),
    ),
    "time": Example(
        make=warp(test_machine_state.TIME, params=test_machine_state.PARAMS),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
        free=("y", "t"),
    ),
    "register budgets": Example(
        make=lambda: program(
            test_machine_state.REGISTERS,
            test_machine_state.ROLES,
            params=test_machine_state.PARAMS,
        ),
        arrays=test_machine_state.tensors,
        expected=_unchecked,
    ),
}
"""Every example by name."""
