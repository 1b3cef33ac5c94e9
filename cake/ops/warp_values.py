"""What warp-level primitives share: per-warp views of thread values, and typing of scalars."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32, U32, DType
from cake.ir.nodes import Call, Expr, Static
from cake.ir.types import WARP, WARPGROUP, Scalar
from cake.ops import check
from cake.ops.base import TypingContext, operand
from cake.ops.machine import Unit

DTYPES = (F32, I32, U32)
FULL = "0xffffffffu"
"""Member mask: all lanes, since the primitives are convergent."""


def typed_scalar(t: TypingContext, call: Call, name: str, admitted: tuple[DType, ...]) -> Expr:
    """A scalar of 32 bits; compile-time numbers take f32 or i32."""
    e = operand(call, name)
    assert e is not None
    if isinstance(e, Static) and isinstance(e.value, int | float):
        e = t.coerce(e, F32 if isinstance(e.value, float) else I32)
    if not isinstance(e.type, Scalar) or e.type.dtype not in admitted:
        names = ", ".join(d.name for d in admitted)
        t.fail(f"{name} must be a scalar of {names}, got {check.describe(e)}", e)
    return e


def per_warp(t: TypingContext, dtype: DType) -> Scalar:
    """A result that is one value a warp: uniform in a warp, varying in a warpgroup."""
    return Scalar(dtype, t.unit_threads == WARPGROUP)


def by_warp(unit: Unit, value: Any) -> Any:
    """A scalar's values as (warps, lanes)."""
    return np.broadcast_to(value, (unit.threads,)).reshape(-1, WARP)


def spread(unit: Unit, value: Any, call: Call) -> Any:
    """One value a warp, (warps,), as the scalar that the type says."""
    assert isinstance(call.type, Scalar)
    return np.repeat(value, WARP) if call.type.varying else value[0]
