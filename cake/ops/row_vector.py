"""``row_vector``: one value for each row of a fragment."""

from __future__ import annotations

from cake.ir.dtypes import F32, I32, U32
from cake.ir.nodes import Call
from cake.ir.types import WARP, RowVector
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
    warps = t.unit_threads // WARP
    unit = "warpgroup" if warps == 4 else "warp"
    rows = fills.multiple(
        t, static(call, "rows"), 16 * warps, f"the rows of a {unit}'s vector", operand(call, "rows")
    )
    partial = fills.flag(t, call, "partial")
    return fills.typed_fill(t, call, RowVector(dtype, rows, warps, partial))


register(
    Primitive(
        name="row_vector",
        params=(
            Param("dtype", "static"),
            Param("rows", "static"),
            Param("fill", default=None),
            Param("partial", "static", False, keyword_only=True),
        ),
        doc="""One value of ``dtype`` (f32, i32, u32) for each of ``rows`` rows, held by a quad.

Rows are a multiple of 16 for a warp, of 64 for a warpgroup. ``partial=True`` lets each lane hold
its own candidate over the columns it owns, as ``reduce_rows`` and ``argmin_cols`` produce it.
Without ``fill`` the registers hold nothing yet.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16: rows of the accumulator",
        typing=_typing,
        effects=no_effects,
        meaning=fills.meaning,
        cost=fills.cost,
        emit={"": fills.emit},
    )
)
