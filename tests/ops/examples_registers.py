"""Examples of what happens in registers: arithmetic, conversions, folds."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cake.ir.dtypes import F32
from cake.ir.types import Fragment
from cake.ops import elementwise_bits as bits
from cake.ops.values import from_matrix, to_matrix
from tests.ops.example import Arrays, Example, warp, zeros

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


REGISTERS = {
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
}
