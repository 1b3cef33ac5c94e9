"""``warp_scan``: prefix folds over the lanes of a warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import WARP, Scalar
from cake.ops import fills, folds
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)
from cake.ops.c_types import C_TYPE
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.warp_values import DTYPES, FULL, by_warp, typed_scalar

STEPS = (1, 2, 4, 8, 16)
"""Distances of the exchanges, in order (Hillis and Steele, 1986): it fixes how f32 rounds."""


def _typing(t: TypingContext, call: Call) -> Typed:
    x = typed_scalar(t, call, "x", DTYPES)
    folds.typed_op(t, call)
    fills.flag(t, call, "exclusive")
    assert isinstance(x.type, Scalar)
    return Typed(Scalar(x.type.dtype, True), (x, *call.args[1:]))


def _meaning(unit: Unit, call: Call) -> Any:
    x = operand(call, "x")
    assert x is not None
    op, value = static(call, "op"), by_warp(unit, unit.eval(x))
    for distance in STEPS:
        lower = np.roll(value, distance, axis=1)
        value = np.where(np.arange(WARP) >= distance, folds.combine(op, value, lower), value)
    if static(call, "exclusive"):
        assert isinstance(call.type, Scalar)
        first = np.arange(WARP) == 0
        value = np.where(first, folds.identity(op, call.type.dtype), np.roll(value, 1, axis=1))
    return value.reshape(-1)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, t = operand(call, "x"), call.type
    assert x is not None
    assert isinstance(t, Scalar)
    c, op, exclusive = C_TYPE[t.dtype], static(call, "op"), static(call, "exclusive")
    name = f"warp_scan_{op}_{c}{'_before' if exclusive else ''}"
    result = "x"
    if exclusive:
        none = folds.c_identity(op, t.dtype)
        result = f"lane == 0 ? {none} : lower"
    up = f"  const {c} lower = __shfl_up_sync({FULL}, x, 1);\n" if exclusive else ""
    code = f"""\
__device__ __forceinline__ {c} {name}({c} x, int lane) {{
#pragma unroll
  for (int d = 1; d < 32; d *= 2) {{
    const {c} lower = __shfl_up_sync({FULL}, x, d);
    x = lane >= d ? {folds.c_combine(op, t.dtype, "x", "lower")} : x;
  }}
{up}  return {result};
}}"""
    return f"{cg.helper(name, code)}({cg.scalar(x)}, lane)"


def _cost(call: Call, threads: int) -> Cost:
    n = len(STEPS) * threads
    return Cost(alu=2 * n, issue=3 * n // WARP, smem=4 * n)


register(
    Primitive(
        name="warp_scan",
        params=(
            Param("x"),
            Param("op", "static", "sum"),
            Param("exclusive", "static", False, keyword_only=True),
        ),
        doc="""The fold of x over the lanes up to and including the own one, within a warp.

x is f32, i32 or u32, ``op`` "sum" (default), "min" or "max". Lanes add what lies 1, 2, 4, 8, 16
lanes lower, in this order, so f32 rounds alike in simulator and GPU; integers wrap.
``exclusive=True`` leaves out the own lane: lane 0 gets 0 (the largest, smallest value for min,
max).""",
        source="PTX ISA, shfl.sync.up",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        convergent=True,
    )
)
