"""The operations that reductions and scans fold with: rows of the elementwise table."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32, U32, DType, numpy_dtype
from cake.ir.nodes import Call
from cake.ops.base import TypingContext, operand, static
from cake.ops.elementwise import TABLE

DTYPES: tuple[DType, ...] = (F32, I32, U32)
_ROWS = {"sum": "add", "min": "min", "max": "max"}
NAMES = tuple(_ROWS)
_IDENTITIES: dict[tuple[str, DType], tuple[float | int, str]] = {
    ("sum", F32): (0.0, "0.0f"),
    ("min", F32): (np.inf, "__int_as_float(0x7f800000)"),
    ("max", F32): (-np.inf, "__int_as_float(0xff800000)"),
    ("sum", I32): (0, "0"),
    ("min", I32): (2**31 - 1, "2147483647"),
    ("max", I32): (-(2**31), "(-2147483647 - 1)"),
    ("sum", U32): (0, "0u"),
    ("min", U32): (2**32 - 1, "4294967295u"),
    ("max", U32): (0, "0u"),
}


def typed_op(t: TypingContext, call: Call) -> str:
    """The ``op`` attribute: "sum", "min" or "max"."""
    op = static(call, "op")
    if op not in _ROWS:
        admitted = ", ".join(f'"{n}"' for n in NAMES)
        t.fail(f"op must be one of {admitted}, got {op!r}", operand(call, "op"))
    return str(op)


def combine(op: str, a: Any, b: Any) -> Any:
    """One step on numpy arrays, rounded as the GPU rounds it."""
    with np.errstate(all="ignore"):
        return TABLE[_ROWS[op]].numpy(a, b)


def c_combine(op: str, dtype: DType, a: str, b: str) -> str:
    """One step as a C expression."""
    return TABLE[_ROWS[op]].c(dtype, [a, b])


def identity(op: str, dtype: DType) -> Any:
    """What a fold of nothing gives, as a numpy scalar; scans start from it."""
    return numpy_dtype(dtype).type(_IDENTITIES[op, dtype][0])


def c_identity(op: str, dtype: DType) -> str:
    """The same as a C expression."""
    return _IDENTITIES[op, dtype][1]
