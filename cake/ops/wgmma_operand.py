"""Operands of wgmma in shared memory: matrix descriptors of swizzled views.

A view is *K-major* if K runs along the rows as stored (A as it stands, B as ``.T``), else
*MN-major*. Each instruction takes 32 bytes of K; its descriptor is that of the first instruction
plus a step. (PTX ISA, "Matrix Descriptor Format" and "Strides" of wgmma.)
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Literal

from cake.ir.nodes import Call, Const, Expr, View
from cake.ir.program import Smem
from cake.ir.types import Scalar, SmemView
from cake.ops import check
from cake.ops.base import TypingContext
from cake.ops.machine import Unit
from cake.ops.tiles import check_multiple, typed_multiple

K_BYTES = 32
"""Bytes along K that one instruction takes."""
CORE_ROWS = 8
"""Rows of a core matrix; the swizzle repeats after them."""
SWIZZLE_MODE = {128: 1, 64: 2, 32: 3}
"""Bits 62-63 of the descriptor."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixOperand:
    """What a descriptor says beside the start address.

    ``fields`` are its upper bits, as one number to be ORed with the encoded start address;
    ``steps`` are the bytes from the view's origin to the start of each instruction's slice.
    """

    k_major: bool
    fields: int
    steps: tuple[int, ...]


def logical_shape(t: SmemView) -> tuple[int, int]:
    """Shape of a rank-2 view after transposition."""
    rows, columns = t.shape
    return (columns, rows) if t.transposed else (rows, columns)


def is_k_major(t: SmemView, side: Literal["a", "b"]) -> bool:
    """Whether K runs along the stored rows."""
    return t.transposed == (side == "b")


def matrix_operand(view: View, decl: Smem, side: Literal["a", "b"]) -> MatrixOperand:
    """Descriptor fields and steps of a view that :func:`typed_operand` admits."""
    t = view.type
    assert isinstance(t, SmemView)
    rows, columns = t.shape
    width, size = decl.swizzle, decl.dtype.bytes
    block = prod(decl.shape[:-1]) * width
    if is_k_major(t, side):
        leading = 16
        last = view.offsets[-1]
        first = int(last.value) * size if isinstance(last, Const) else 0
        starts = [first + k for k in range(0, columns * size, K_BYTES)]
        places = [b // width * block + b % width for b in starts]
        steps = tuple(p - places[0] for p in places)
    else:
        leading = block
        per_step = K_BYTES // size
        steps = tuple(k * width for k in range(0, rows, per_step))
    fields = encode(leading) << 16 | encode(CORE_ROWS * width) << 32
    fields |= SWIZZLE_MODE[width] << 62
    return MatrixOperand(k_major=is_k_major(t, side), fields=fields, steps=steps)


def encode(offset: int) -> int:
    """matrix-descriptor-encode: 14 bits in units of 16 bytes."""
    return (offset & 0x3FFFF) >> 4


def typed_operand(
    t: TypingContext, e: Expr | None, side: Literal["a", "b"], mn_major: bool
) -> tuple[View, SmemView]:
    """A view that a descriptor can describe; ``mn_major`` admits MN-major ones."""
    _, tile = check.smem(t, e, side.upper(), rank=2)
    assert isinstance(e, View)
    decl = t.resource(e.base)
    assert isinstance(decl, Smem)
    name = side.upper()
    if decl.swizzle not in SWIZZLE_MODE:
        t.fail(
            f"{name} must lie in a buffer with swizzle 32, 64 or 128, {e.base} has"
            f" {decl.swizzle or 'none'}",
            e,
            helps=(f"declare {e.base} = smem(..., swizzle=128)",),
        )
    if not is_k_major(tile, side) and not mn_major:
        stored = "(M, K)" if side == "a" else "(N, K), used as .T"
        t.fail(
            f"{name} of {tile.dtype} must be K-major: stored as {stored}",
            e,
            helps=("only 16-bit types may be stored the other way",),
        )
    _check_blocks(t, e, decl, tile, side)
    for offset in (*e.offsets, *([] if e.stage is None else [e.stage])):
        if isinstance(offset.type, Scalar):
            check.uniform(t, offset, f"an offset of {name}")
    typed_multiple(t, e.offsets[-2], CORE_ROWS, f"the row offset of {name}")
    typed_multiple(t, e.offsets[-1], column_multiple(e, decl, side), f"the column offset of {name}")
    return e, tile


def _check_blocks(
    t: TypingContext, e: View, decl: Smem, tile: SmemView, side: Literal["a", "b"]
) -> None:
    rows, row_bytes = decl.shape[-2], decl.shape[-1] * decl.dtype.bytes
    if row_bytes % decl.swizzle:
        t.fail(
            f"rows of {e.base} have {row_bytes} bytes, which do not fill blocks of"
            f" {decl.swizzle} bytes",
            e,
            helps=(f"use swizzle={row_bytes & -row_bytes}",) if row_bytes in SWIZZLE_MODE else (),
            facts={"row_bytes": row_bytes, "swizzle": decl.swizzle},
        )
    if rows % CORE_ROWS:
        t.fail(
            f"{e.base} must have a multiple of {CORE_ROWS} rows, it has {rows}",
            e,
            facts={"rows": rows, "multiple_of": CORE_ROWS},
        )
    block = decl.swizzle // decl.dtype.bytes
    extent = tile.shape[-1]
    if not is_k_major(tile, side) and extent > block and extent % block:
        t.fail(
            f"the {extent} columns of {side.upper()} do not fill blocks of {block}",
            e,
            facts={"columns": extent, "multiple_of": block},
        )


def column_multiple(view: View, decl: Smem, side: Literal["a", "b"]) -> int:
    """What the column offset of a view must be a multiple of, in elements.

    Instructions step through a block of ``swizzle`` bytes in 32-byte slices, and the steps are
    compile-time numbers: a run-time offset must therefore start a block.
    """
    t = view.type
    assert isinstance(t, SmemView)
    known = is_k_major(t, side) and isinstance(view.offsets[-1], Const)
    return (K_BYTES if known else decl.swizzle) // decl.dtype.bytes


def check_offsets(unit: Unit, call: Call, view: View, side: Literal["a", "b"]) -> None:
    """Findings for run-time offsets that no descriptor can express."""
    decl, name = unit.resource(view.base), side.upper()
    assert isinstance(decl, Smem)
    rows, columns = view.offsets[-2:]
    check_multiple(unit, call, rows, CORE_ROWS, f"the row offset of {name}")
    multiple = column_multiple(view, decl, side)
    check_multiple(unit, call, columns, multiple, f"the column offset of {name}")
