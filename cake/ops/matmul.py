"""The product that matrix instructions compute, for the meaning of ``mma`` and ``wgmma``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake.ir.dtypes import TF32, DType


def wide(matrix: Any, dtype: DType) -> Any:
    """An operand in float64. The tensor core ignores the low 13 bits of a tf32 operand."""
    if dtype == TF32:
        bits = np.ascontiguousarray(matrix, np.float32).view(np.uint32) & np.uint32(0xFFFFE000)
        matrix = bits.view(np.float32)
    with np.errstate(all="ignore"):
        return np.asarray(matrix).astype(np.float64)


def accumulate(c: Any, a: Any, b: Any, k: int, exact: Callable[[Any], Any]) -> Any:
    """c + a @ b in steps of ``k``, the K of one instruction; ``a`` and ``b`` come from ``wide``.

    The order of additions within an instruction, and the width of its sums, are not specified by
    the PTX ISA: here they are exact to float64, and every instruction rounds its result to the
    type of ``c`` (float32 or float16), after the arithmetic's ``exact``. i32 accumulators wrap.
    """
    with np.errstate(all="ignore"):
        for start in range(0, a.shape[1], k):
            part = a[:, start : start + k] @ b[start : start + k]
            if c.dtype == np.int32:
                c = (c.astype(np.int64) + part.astype(np.int64)).astype(np.int32)
            else:
                c = exact(c.astype(np.float64) + part).astype(c.dtype)
    return c
