"""Checks shared by typing rules; each fails with a message that names what was wanted and got."""

from __future__ import annotations

from collections.abc import Sequence

from cake.ir.dtypes import BOOL, F32, I32, I64, U32, DType
from cake.ir.nodes import Const, Expr, Static
from cake.ir.types import (
    ColVector,
    Fragment,
    RegArray,
    RowVector,
    Scalar,
    SmemView,
    TensorPlace,
    Type,
)
from cake.ops.base import TypingContext


def describe(e: Expr) -> str:
    """An operand for a message: its type, or the value of a compile-time number."""
    return f"compile-time {e.value!r}" if isinstance(e, Static) else str(e.type)


def in_registers(t: TypingContext, e: Expr, what: str) -> None:
    """A value in registers, or a compile-time number or truth value."""
    number = isinstance(e, Static) and isinstance(e.value, bool | int | float)
    if not number and _shape_rank(e.type) < 0:
        memory = isinstance(e.type, SmemView | TensorPlace)
        t.fail(
            f"{what} must be a value in registers, got {describe(e)}",
            e,
            helps=("read memory with load(...) first",) if memory else (),
        )


def integer(t: TypingContext, e: Expr | None, what: str) -> Expr:
    """An i32/i64/u32 scalar; compile-time ints become i32 (or i64 if they need it)."""
    if e is None:
        t.fail(f"{what} is missing")
    if isinstance(e, Static) and isinstance(e.value, int) and not isinstance(e.value, bool):
        return t.coerce(e, I32 if -(2**31) <= e.value < 2**31 else I64)
    if isinstance(e.type, Scalar) and e.type.dtype in (I32, I64, U32):
        return e
    t.fail(f"{what} must be an integer scalar, got {describe(e)}", e)


def uniform(t: TypingContext, e: Expr, what: str) -> Expr:
    """A value that is the same in all threads of the unit."""
    if isinstance(e.type, Scalar) and e.type.varying:
        t.fail(
            f"{what} must be the same in all threads of the unit, but it varies per thread",
            e,
            helps=("make it uniform with a reduction or a shuffle from one lane",),
        )
    return e


def boolean(t: TypingContext, e: Expr | None, what: str) -> Expr:
    """A bool scalar."""
    if e is None:
        t.fail(f"{what} is missing")
    if isinstance(e, Static) and isinstance(e.value, bool):
        return t.coerce(e, BOOL)
    if isinstance(e.type, Scalar) and e.type.dtype == BOOL:
        return e
    t.fail(f"{what} must be a bool, got {describe(e)}", e)


def smem(
    t: TypingContext, e: Expr | None, what: str, rank: int | None = None
) -> tuple[Expr, SmemView]:
    """A shared-memory view, of a given rank if asked."""
    if e is None or not isinstance(e.type, SmemView):
        got = "nothing" if e is None else describe(e)
        t.fail(f"{what} must be a shared-memory view, got {got}", e)
    if rank is not None and len(e.type.shape) != rank:
        t.fail(f"{what} must have rank {rank}, got rank {len(e.type.shape)}", e)
    return e, e.type


def fragment(t: TypingContext, e: Expr | None, what: str) -> tuple[Expr, Fragment]:
    """A fragment."""
    if e is None or not isinstance(e.type, Fragment):
        t.fail(f"{what} must be a fragment, got {'nothing' if e is None else describe(e)}", e)
    return e, e.type


def one_of(t: TypingContext, e: Expr | None, what: str, admitted: Sequence[object]) -> None:
    """A compile-time attribute among ``admitted``."""
    if isinstance(e, Static | Const) and e.value not in admitted:
        t.fail(f"{what} must be one of {', '.join(map(str, admitted))}, got {e.value!r}", e)


def static_int(t: TypingContext, e: Expr | None, what: str, low: int, high: int) -> int:
    """A compile-time int within [low, high]."""
    if not isinstance(e, Static | Const) or not isinstance(e.value, int):
        t.fail(f"{what} must be a compile-time int", e)
    if not low <= e.value <= high:
        t.fail(
            f"{what} must be in [{low}, {high}], got {e.value}",
            e,
            facts={"value": e.value, "low": low, "high": high},
        )
    return e.value


def _shape_rank(x: Type) -> int:
    order = (Scalar, RegArray, ColVector, RowVector, Fragment)
    return next((i for i, k in enumerate(order) if isinstance(x, k)), -1)


def broadcast(t: TypingContext, operands: Sequence[Expr], dtype: DType) -> Type:
    """Common shape of elementwise operands, as a type of element ``dtype``.

    Scalars broadcast to anything; row and column vectors to fragments whose rows or columns they
    match; a row vector with a column vector makes the fragment of all pairs.
    """
    widest = max(operands, key=lambda e: _shape_rank(e.type))
    shape = widest.type
    cols = next((e.type for e in operands if isinstance(e.type, ColVector)), None)
    if isinstance(shape, RowVector) and cols is not None:
        shape = Fragment(dtype, (shape.rows, cols.cols), "acc", shape.warps)
    for e in operands:
        if not _fits(e.type, shape):
            t.fail(f"{describe(e)} does not broadcast to {describe(widest)}", e)
    if isinstance(shape, Scalar):
        varying = any(isinstance(e.type, Scalar) and e.type.varying for e in operands)
        return Scalar(dtype, varying)
    if isinstance(shape, RegArray):
        return RegArray(dtype, shape.length)
    if isinstance(shape, ColVector):
        partial = any(isinstance(e.type, ColVector) and e.type.partial for e in operands)
        return ColVector(dtype, shape.cols, partial)
    if isinstance(shape, RowVector):
        partial = any(isinstance(e.type, RowVector) and e.type.partial for e in operands)
        return RowVector(dtype, shape.rows, shape.warps, partial)
    assert isinstance(shape, Fragment)
    return Fragment(dtype, shape.shape, shape.layout, shape.warps)


def _fits(x: Type, shape: Type) -> bool:
    if isinstance(x, Scalar):
        return True
    if isinstance(shape, Fragment) and shape.layout == "acc":
        if isinstance(x, RowVector):
            return x.rows == shape.shape[0] and x.warps == shape.warps
        if isinstance(x, ColVector):
            return x.cols == shape.shape[1]
    if isinstance(x, Fragment) and isinstance(shape, Fragment):
        return (x.shape, x.layout, x.warps) == (shape.shape, shape.layout, shape.warps)
    if isinstance(x, RowVector) and isinstance(shape, RowVector):
        return (x.rows, x.warps) == (shape.rows, shape.warps)
    if isinstance(x, ColVector) and isinstance(shape, ColVector):
        return x.cols == shape.cols
    if isinstance(x, RegArray) and isinstance(shape, RegArray):
        return x.length == shape.length
    return False


NUMERIC: tuple[DType, ...] = (F32, I32, U32, I64)
"""Element types with arithmetic; 16-bit floats are cast to f32 first."""
