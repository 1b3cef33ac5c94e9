"""numpy functions behind the elementwise table: what a lane of the GPU computes, bit for bit.

Only the approximate functions differ from the GPU: they are computed in float64 and rounded once,
so they lie within the error that the PTX ISA states for the instruction. NaN payloads are not part
of the meaning. Callers silence numpy's floating-point warnings.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

TINY = np.finfo(np.float32).tiny
LOG2_E = np.float32(1.4426950408889634)
LN_2 = np.float32(0.6931471805599453)


def fma(a: Any, b: Any, c: Any) -> Any:
    """float32 a * b + c with one rounding.

    The product of two float32 is exact in float64. Their sum with ``c`` is rounded to odd in
    float64 (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008), which
    keeps the second rounding, to float32, correct: 53 >= 24 + 2 digits.
    """
    product = np.multiply(a, b, dtype=np.float64)
    addend = np.asarray(c, dtype=np.float64)
    total = np.atleast_1d(product + addend)
    recovered = total - product
    error = (product - (total - recovered)) + (addend - recovered)
    bits = total.view(np.int64)
    inexact = (error != 0) & np.isfinite(total) & (bits & 1 == 0)
    # The true value lies beyond ``total`` on the side of ``error``; the neighbour there is odd.
    away = (error > 0) == (total > 0)
    odd = np.where(inexact, bits + np.where(away, 1, -1), bits).view(np.float64)
    return odd.astype(np.float32).reshape(np.shape(product + addend))


def minimum(a: Any, b: Any) -> Any:
    """PTX min: the other operand if one is NaN; -0.0 lies below +0.0."""
    return _ordered_zeros(np.fmin(a, b), a, b, np.logical_or)


def maximum(a: Any, b: Any) -> Any:
    """PTX max: the other operand if one is NaN; +0.0 lies above -0.0."""
    return _ordered_zeros(np.fmax(a, b), a, b, np.logical_and)


def _ordered_zeros(result: Any, a: Any, b: Any, negative: Callable[[Any, Any], Any]) -> Any:
    if np.asarray(a).dtype.kind != "f":
        return result
    zero = np.copysign(np.float32(0), np.where(negative(np.signbit(a), np.signbit(b)), -1, 1))
    return np.where((np.equal(a, 0)) & (np.equal(b, 0)), zero.astype(np.float32), result)


def flush(x: Any) -> Any:
    """Subnormals become zeros of the same sign (PTX ``.ftz``)."""
    return np.where(np.abs(x) < TINY, np.copysign(np.float32(0), x), x)


def approximate(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A ``.approx.ftz`` instruction: operand and result flushed, one rounding from float64."""

    def run(x: Any) -> Any:
        wide = np.asarray(flush(x)).astype(np.float64)
        return flush(np.asarray(function(wide)).astype(np.float32))

    return run


exp2 = approximate(np.exp2)
log2 = approximate(np.log2)
rcp = approximate(lambda x: 1.0 / x)
rsqrt = approximate(lambda x: 1.0 / np.sqrt(x))
sqrt = approximate(np.sqrt)
sin = approximate(np.sin)
cos = approximate(np.cos)


def tanh(x: Any) -> Any:
    """tanh.approx keeps subnormals."""
    return np.tanh(np.asarray(x).astype(np.float64)).astype(np.float32)


def exp(x: Any) -> Any:
    """exp2 of the float32 product with log2(e)."""
    return exp2(np.multiply(x, LOG2_E))


def log(x: Any) -> Any:
    """float32 product of log2 with ln(2)."""
    return np.multiply(log2(x), LN_2)


def sigmoid(x: Any) -> Any:
    """Reciprocal of 1 + exp2 of the float32 product with -log2(e)."""
    return rcp(np.add(np.float32(1), exp2(np.multiply(x, -LOG2_E))))


def bit_width(x: Any) -> int:
    """Bits of the element type of an integer array."""
    return int(np.asarray(x).dtype.itemsize) * 8
