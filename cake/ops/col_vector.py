"""``col_vector``: one value for each column of a fragment."""

from __future__ import annotations

from cake.ir.dtypes import F32, I32, U32
from cake.ir.nodes import Call
from cake.ir.types import ColVector
from cake.ops import fills
from cake.ops.base import (
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)


def _typing(t: TypingContext, call: Call) -> Typed:
    dtype = fills.typed_dtype(t, call, (F32, I32, U32))
    at = operand(call, "cols")
    cols = fills.multiple(t, static(call, "cols"), 8, "the columns of a vector", at)
    partial = fills.flag(t, call, "partial")
    return fills.typed_fill(t, call, ColVector(dtype, cols, partial))


register(
    Primitive(
        name="col_vector",
        params=(
            Param("dtype", "static"),
            Param("cols", "static"),
            Param("fill", default=None),
            Param("partial", "static", False, keyword_only=True),
        ),
        doc="""One value of ``dtype`` (f32, i32, u32) for each of ``cols`` columns, a multiple of 8.

Lanes with equal ``lane % 4`` hold the same columns. ``partial=True`` lets each lane hold its own
candidate over the rows it owns, as ``reduce_cols`` and ``argmin_rows`` produce it.
Without ``fill`` the registers hold nothing yet.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16: columns of the accumulator",
        typing=_typing,
        effects=no_effects,
        meaning=fills.meaning,
        cost=fills.cost,
        emit={"": fills.emit},
    )
)
