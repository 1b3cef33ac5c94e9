"""``registers``: an array of registers of each thread."""

from __future__ import annotations

from cake.ir.dtypes import BF16, BOOL, E4M3, E5M2, F16, F32, I8, I32, I64, U8, U16, U32
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
from cake.ops.c_types import per_word

DTYPES = (F32, I32, U32, I64, BF16, F16, U16, E4M3, E5M2, I8, U8, BOOL)


def _typing(t: TypingContext, call: Call) -> Typed:
    dtype = fills.typed_dtype(t, call, DTYPES)
    at = operand(call, "n")
    n = fills.multiple(t, static(call, "n"), per_word(dtype), f"the length of a {dtype} array", at)
    return fills.typed_fill(t, call, RegArray(dtype, n))


register(
    Primitive(
        name="registers",
        params=(Param("dtype", "static"), Param("n", "static"), Param("fill", default=None)),
        doc="""An array of ``n`` elements in the registers of each thread.

``r[i]`` reads and ``r[i] = v`` writes one element; i must be known at compile time or come from an
unrolled loop, or the compiler moves the array to local memory. The length of a 16-bit ``dtype`` is
a multiple of 2, of an 8-bit one of 4. Without ``fill`` the registers hold nothing yet.""",
        source="PTX ISA, State Spaces: .reg",
        typing=_typing,
        effects=no_effects,
        meaning=fills.meaning,
        cost=fills.cost,
        emit={"": fills.emit},
    )
)
