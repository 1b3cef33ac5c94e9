"""``registers``: an array of registers of each thread."""

from __future__ import annotations

from cake.ir.dtypes import BF16, BOOL, F16, F32, I32, I64, U32
from cake.ir.nodes import Call
from cake.ir.types import RegArray
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
    dtype = fills.typed_dtype(t, call, (F32, I32, U32, I64, BF16, F16, BOOL))
    unit = 2 if dtype.bits == 16 else 1
    at = operand(call, "n")
    n = fills.multiple(t, static(call, "n"), unit, f"the length of a {dtype} array", at)
    return fills.typed_fill(t, call, RegArray(dtype, n))


register(
    Primitive(
        name="registers",
        params=(Param("dtype", "static"), Param("n", "static"), Param("fill", default=None)),
        doc="""An array of ``n`` elements in the registers of each thread.

``r[i]`` reads and ``r[i] = v`` writes one element; i must be known at compile time or come from an
unrolled loop, or the compiler moves the array to local memory. 16-bit arrays have even length.""",
        source="PTX ISA, State Spaces: .reg",
        typing=_typing,
        effects=no_effects,
        meaning=fills.meaning,
        cost=fills.cost,
        emit={"": fills.emit},
    )
)
