"""``warp_scan``: inclusive prefix sums over the lanes of a warp."""

from __future__ import annotations

from typing import Any

import numpy as np

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
from cake.ops.warp_values import DTYPES, FULL, by_warp, typed_scalar

STEPS = (1, 2, 4, 8, 16)
"""Distances of the additions, in order (Hillis and Steele, 1986): it fixes how f32 rounds."""


def _typing(t: TypingContext, call: Call) -> Typed:
    x = typed_scalar(t, call, "x", DTYPES)
    assert isinstance(x.type, Scalar)
    return Typed(Scalar(x.type.dtype, True), (x,))


def _meaning(unit: Unit, call: Call) -> Any:
    x = operand(call, "x")
    assert x is not None
    value = by_warp(unit, unit.eval(x))
    for distance in STEPS:
        lower = np.roll(value, distance, axis=1)
        value = np.where(np.arange(WARP) >= distance, folds.combine("sum", value, lower), value)
    return value.reshape(-1)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, t = operand(call, "x"), call.type
    assert x is not None
    assert isinstance(t, Scalar)
    c = C_TYPE[t.dtype]
    name = f"warp_scan_{c}"
    code = f"""\
__device__ __forceinline__ {c} {name}({c} x, int lane) {{
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {{
    const {c} lower = __shfl_up_sync({FULL}, x, d);
    x = lane >= d ? x + lower : x;
  }}
  return x;
}}"""
    return f"{cg.helper(name, code)}({cg.scalar(x)}, lane)"


def _cost(call: Call, threads: int) -> Cost:
    n = len(STEPS) * threads
    return Cost(alu=2 * n, issue=3 * n // WARP, smem=4 * n)


register(
    Primitive(
        name="warp_scan",
        params=(Param("x"),),
        doc="""The sum of x over the lanes up to and including the own one, within a warp.

x is f32, i32 or u32. Lanes add what lies 1, 2, 4, 8, 16 lanes lower, in this order, so f32 rounds
alike in simulator and GPU; integers wrap.""",
        source="PTX ISA, shfl.sync.up",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        convergent=True,
    )
)
