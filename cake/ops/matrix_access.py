"""What ldmatrix and stmatrix share: matrices of 8 rows of 16 bytes, four to an instruction.

Lane l of the warp names row ``l % 8`` of matrix ``l / 8``: 16 bytes that lie together. A row of a
stored matrix is a row of the tile, or a column of it if the view is transposed; then the
``.trans`` form turns each matrix over on the way. (PTX ISA, ldmatrix, stmatrix.)
"""

from __future__ import annotations

from cake.ir.dtypes import DType
from cake.ir.nodes import Call, Expr, View
from cake.ir.program import Smem
from cake.ir.types import Fragment, SmemView
from cake.ops import check
from cake.ops.base import TypingContext
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.tiles import check_multiple, typed_multiple

ROW_BYTES = 16


def per_row(dtype: DType) -> int:
    """Elements in a row of a matrix."""
    return ROW_BYTES // dtype.bytes


def typed_view(
    t: TypingContext, e: Expr | None, admitted: tuple[DType, ...]
) -> tuple[View, SmemView]:
    """A two-dimensional view of elements of these types whose matrix rows lie on 16 bytes."""
    view, tile = check.smem(t, e, "the view", rank=2)
    assert isinstance(view, View)
    if tile.dtype not in admitted:
        names = ", ".join(d.name for d in admitted)
        t.fail(f"matrix rows hold {names}, got {tile.dtype}", view)
    buffer = t.resource(view.base)
    assert isinstance(buffer, Smem)
    pitch = buffer.shape[-1] * tile.dtype.bytes
    if pitch % ROW_BYTES:
        t.fail(
            f"rows of {view.base} are {pitch} bytes apart, not a multiple of {ROW_BYTES}",
            view,
            helps=("pad the rows, or use a swizzle",),
            facts={"pitch": pitch, "multiple_of": ROW_BYTES},
        )
    typed_multiple(t, view.offsets[-1], per_row(tile.dtype), "the last offset of the view")
    return view, tile


def check_view(unit: Unit, call: Call, view: View) -> None:
    """A finding if the view starts inside a matrix row."""
    assert isinstance(view.type, SmemView)
    per = per_row(view.type.dtype)
    check_multiple(unit, call, view.offsets[-1], per, "the last offset of the view")


def acc_row(t: Fragment) -> str:
    """First row of atom row ``i`` of a warp's part of an acc fragment, as a C expression."""
    start = f"warp_in_unit * {t.shape[0] // t.warps} + " if t.warps > 1 else ""
    return f"{start}i * 16"


def acc_addresses(cg: Emitter, view: View, t: Fragment, column: str, matrices: int) -> str:
    """Where a lane's row of the four (two) matrices of one block of an A fragment lies.

    Matrices go down the rows first, then to the next columns: the order of the registers.
    """
    assert isinstance(view.type, SmemView)
    row = acc_row(t)
    if not view.type.transposed:
        plus = f" + lane / 16 * {per_row(t.dtype)}" if matrices == 4 else ""
        return cg.smem_address(view, [f"{row} + lane % 16", f"{column}{plus}"])
    down = "lane / 8 % 2 * 8"
    plus = " + lane / 16 * 8" if matrices == 4 else ""
    return cg.smem_address(view, [f"{row} + {down}", f"{column} + lane % 8{plus}"])


def matrix_blocks(extent: int) -> tuple[int, bool]:
    """Pairs of 8 along an extent, and whether a single 8 remains."""
    return extent // 16, extent % 16 != 0
