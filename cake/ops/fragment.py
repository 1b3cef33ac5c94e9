"""``fragment``: a register tile in the layout of the matrix instructions."""

from __future__ import annotations

from cake.ir.dtypes import BF16, E4M3, E5M2, F16, F32, I8, I32, TF32, U8, U32, DType
from cake.ir.nodes import Call
from cake.ir.types import WARP, Fragment
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
from cake.ops.matrix_access import per_row

DTYPES = (F32, TF32, I32, U32, BF16, F16, E4M3, E5M2, I8, U8)


LAYOUTS = ("acc", "b", "a_ldmatrix", "b_ldmatrix")


def _typing(t: TypingContext, call: Call) -> Typed:
    dtype = fills.typed_dtype(t, call, DTYPES)
    layout = static(call, "operand")
    if layout not in LAYOUTS:
        names = ", ".join(f'"{n}"' for n in LAYOUTS)
        t.fail(f"operand must be one of {names}, got {layout!r}", operand(call, "operand"))
    at, shape = operand(call, "shape"), static(call, "shape")
    if not isinstance(shape, tuple) or len(shape) != 2:
        t.fail(f"shape must be (rows, columns), got {shape!r}", at)
    warps = t.unit_threads // WARP
    if layout.startswith("b") and warps != 1:
        t.fail(
            f'operand="{layout}" is a B operand of mma, which a warp executes; a warpgroup has no'
            " such",
            helps=("wgmma reads B from shared memory; mma needs role(warps=n)",),
        )
    row_unit, column_unit = _units(t, call, dtype, layout)
    unit = "warpgroup" if warps == 4 else "warp"
    rows = fills.multiple(t, shape[0], row_unit * warps, f"the rows of a {unit}'s fragment", at)
    cols = fills.multiple(t, shape[1], column_unit, "the columns of a fragment", at)
    return fills.typed_fill(t, call, Fragment(dtype, (rows, cols), layout, warps))


def _units(t: TypingContext, call: Call, dtype: DType, layout: str) -> tuple[int, int]:
    """What rows of a warp, and columns, are multiples of."""
    if layout in ("acc", "b"):
        return 16, 8
    if dtype.bits == 16:
        t.fail(
            f"{dtype} has no {layout} layout: ldmatrix brings it as acc or b",
            operand(call, "operand"),
        )
    deep = 2 * per_row(dtype)
    return (16, deep) if layout == "a_ldmatrix" else (deep, 8)


register(
    Primitive(
        name="fragment",
        params=(
            Param("dtype", "static"),
            Param("shape", "static"),
            Param("fill", default=None),
            Param("operand", "static", "acc", keyword_only=True),
        ),
        doc="""A register tile of ``dtype`` and ``shape`` (rows, columns) over the unit's threads.

The unit decides the rows: multiples of 16 for a warp (mma), of 64 for a warpgroup (wgmma). Columns
are multiples of 8. ``operand="acc"`` (default) is the accumulator layout, which for 16-bit data is
the A operand as well; ``operand="b"`` is the B operand (K, N) of mma, K a multiple of 16.
``"a_ldmatrix"`` and ``"b_ldmatrix"`` are operands of 8- and 32-bit elements as ldmatrix brings
them, K a multiple of 32 bytes. Without ``fill`` the registers hold nothing yet, and reading them is
a finding of the simulator.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16; Register Fragments for wgmma.m64nNk16",
        typing=_typing,
        effects=no_effects,
        meaning=fills.meaning,
        cost=fills.cost,
        emit={"": fills.emit},
    )
)
