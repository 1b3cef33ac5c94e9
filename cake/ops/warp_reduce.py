"""``warp_sum``, ``warp_min``, ``warp_max``: the fold of a scalar over the lanes of a warp."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32
from cake.ir.nodes import Call
from cake.ir.types import WARP, Scalar
from cake.ops import folds
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
)
from cake.ops.c_types import C_TYPE
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.warp_values import DTYPES, FULL, by_warp, per_warp, spread, typed_scalar

STEPS = (16, 8, 4, 2, 1)
"""Lane distances of the butterfly, in order: it fixes how f32 sums round."""


def _typing(t: TypingContext, call: Call) -> Typed:
    x = typed_scalar(t, call, "x", DTYPES)
    assert isinstance(x.type, Scalar)
    return Typed(per_warp(t, x.type.dtype), (x,))


def _meaning(op: str, unit: Unit, call: Call) -> Any:
    x = operand(call, "x")
    assert x is not None
    value = by_warp(unit, unit.eval(x))
    for distance in STEPS:
        value = folds.combine(op, value, value[:, np.arange(WARP) ^ distance])
    return spread(unit, value[:, 0], call)


def _emit(op: str, cg: Emitter, call: Call, dest: str | None) -> str:
    x, t = operand(call, "x"), call.type
    assert x is not None
    assert isinstance(t, Scalar)
    c = C_TYPE[t.dtype]
    name = f"warp_{op}_{c}"
    if t.dtype == F32:
        step = folds.c_combine(op, F32, "x", f"__shfl_xor_sync({FULL}, x, d)")
        body = f"  for (int d = {STEPS[0]}; d > 0; d /= 2) x = {step};\n  return x;"
        body = f"#pragma unroll\n{body}"
    else:
        word = {"sum": "add"}.get(op, op)
        suffix = "s32" if t.dtype == I32 else "u32"
        body = f"""\
  {c} y;
  asm volatile("redux.sync.{word}.{suffix} %0, %1, {FULL.rstrip("u")};" : "=r"(y) : "r"(x));
  return y;"""
    code = f"__device__ __forceinline__ {c} {name}({c} x) {{\n{body}\n}}"
    return f"{cg.helper(name, code)}({cg.scalar(x)})"


def _cost(call: Call, threads: int) -> Cost:
    assert isinstance(call.type, Scalar)
    steps = len(STEPS) if call.type.dtype == F32 else 1
    return Cost(alu=steps * threads, issue=2 * steps * threads // WARP, smem=4 * steps * threads)


for _op, _what in (("sum", "sum"), ("min", "smallest"), ("max", "largest")):
    register(
        Primitive(
            name=f"warp_{_op}",
            params=(Param("x"),),
            doc=f"""The {_what} of x over the 32 lanes of a warp; all lanes get it.

x is f32, i32 or u32. f32 folds by exchanges at XOR distance 16, 8, 4, 2, 1, in this order, so
simulator and GPU round alike; integers by redux.sync, and sums wrap. Uniform in a warp; each warp
of a warpgroup has its own.""",
            source="PTX ISA, shfl.sync.bfly and redux.sync",
            typing=_typing,
            effects=no_effects,
            meaning=partial(_meaning, _op),
            cost=_cost,
            emit={"": partial(_emit, _op)},
            requires="redux_int",
            convergent=True,
        )
    )
