"""Rows that bulk copies move: one unswizzled row of shared memory, and its place in a tensor.

(PTX ISA, cp.async.bulk: size and both addresses are multiples of 16 bytes.)
"""

from __future__ import annotations

from cake.ir.nodes import Call, Expr, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import SmemView
from cake.ops.base import TypingContext
from cake.ops.machine import Unit
from cake.ops.tiles import check_multiple, typed_multiple, typed_tile, view_bytes

UNIT = 16
"""Bytes."""


def typed_row(
    t: TypingContext, view: Expr | None, place: Expr | None
) -> tuple[View, SmemView, TensorRef]:
    """A row that a bulk copy can move, and where it lies in the tensor."""
    row, tile, at = typed_tile(t, view, place)
    if len(tile.shape) != 1 or tile.swizzle:
        t.fail(
            f"a bulk copy moves one unswizzled row, got {tile}",
            row,
            helps=("use the TMA copies of tiles for several rows",),
        )
    size = view_bytes(row)
    if size % UNIT:
        t.fail(
            f"a bulk copy moves a multiple of {UNIT} bytes, got {size}",
            row,
            facts={"bytes": size, "multiple_of": UNIT},
        )
    per = UNIT // tile.dtype.bytes
    typed_multiple(t, at.index[-1], per, "the last coordinate of the place")
    typed_multiple(t, row.offsets[-1], per, "the last offset of the view")
    buffer = t.resource(row.base)
    assert isinstance(buffer, Smem)
    if len(buffer.shape) > 1 and buffer.shape[-1] * tile.dtype.bytes % UNIT:
        t.fail(f"rows of {row.base} do not start on multiples of {UNIT} bytes", row)
    return row, tile, at


def check_row(unit: Unit, call: Call, view: View, place: TensorRef) -> None:
    """Findings for run-time offsets that are not whole units."""
    assert isinstance(view.type, SmemView)
    per = UNIT // view.type.dtype.bytes
    check_multiple(unit, call, place.index[-1], per, "the last coordinate of the place")
    check_multiple(unit, call, view.offsets[-1], per, "the last offset of the view")
