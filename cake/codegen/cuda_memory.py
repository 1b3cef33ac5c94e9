"""Addresses in C++: shared memory with its swizzle, global memory with 64-bit strides."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Protocol

from cake.codegen.cuda_text import CInt, known, paren, scaled, total
from cake.ir.nodes import Const, Expr, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import SmemView
from cake.ops.layout import Placement, swizzle_period, swizzled


class Context(Protocol):
    """What addresses need of the emitter."""

    def scalar(self, e: Expr) -> str: ...

    def helper(self, name: str, code: str) -> str: ...


def integer(cg: Context, e: Expr) -> CInt:
    """An integer operand: a number if it is known."""
    return int(e.value) if isinstance(e, Const) else known(cg.scalar(e))


def stage_base(cg: Context, view: View, place: Placement, start: str) -> CInt:
    """Bytes from the start of shared memory to the view's stage; the buffer is at ``start``."""
    terms: list[CInt] = [start]
    if view.stage is not None:
        terms.append(scaled(integer(cg, view.stage), place.stage_bytes, "u"))
    return total(terms, "u")


def element_offset(cg: Context, view: View, buffer: Smem, index: Sequence[CInt]) -> CInt:
    """Bytes from the stage's first byte to an element of the view, swizzle applied.

    ``index`` has one entry for each logical axis of the view, or is empty for its origin.
    """
    assert isinstance(view.type, SmemView)
    inside = list(index) or [0] * len(view.type.shape)
    if view.type.transposed:
        inside[-2:] = reversed(inside[-2:])
    dropped = len(buffer.shape) - len(inside)
    along = [0] * dropped + inside
    offsets = [integer(cg, o) for o in view.offsets]
    if not buffer.swizzle:
        flat = total(
            scaled(total([offset, i]), prod(buffer.shape[axis + 1 :]))
            for axis, (offset, i) in enumerate(zip(offsets, along, strict=True))
        )
        return scaled(flat, buffer.dtype.bytes)
    row = total(
        scaled(total([offset, i]), prod(buffer.shape[axis + 1 : -1]))
        for axis, (offset, i) in enumerate(zip(offsets[:-1], along[:-1], strict=True))
    )
    extent = view.type.shape[-1] if view.type.shape else 1
    return _swizzled_offset(cg, buffer, row, (offsets[-1], along[-1], extent))


def _swizzled_offset(cg: Context, buffer: Smem, row: CInt, column: tuple[CInt, CInt, int]) -> CInt:
    """Byte offset of (row, column); the column is an offset, an index, and the index's bound."""
    width, size = buffer.swizzle, buffer.dtype.bytes
    rows = prod(buffer.shape[:-1])
    offset, index, extent = column
    block_bytes = rows * width
    block: CInt = 0
    within = total([scaled(offset, size), scaled(index, size)])
    if isinstance(offset, int) and offset * size // width == (
        ((offset + extent) * size - 1) // width
    ):
        block = offset * size // width
        within = total([offset * size % width, scaled(index, size)])
    elif buffer.shape[-1] * size > width:
        if isinstance(within, int):
            block, within = divmod(within, width)
        else:
            block = f"({paren(within)} >> {width.bit_length() - 1})"
            within = f"({paren(within)} & {width - 1})"
    base = total([scaled(block, block_bytes), scaled(row, width)])
    if block_bytes % swizzle_period(width):
        return _swizzled_address(cg, total([base, within]), width)
    # Blocks start on a period, so the XOR depends on the row alone: compilers then see that rows
    # a period apart differ by a constant.
    return total([base, _xored(within, row, width)])


def _xored(within: CInt, row: CInt, width: int) -> CInt:
    """A byte of a row with its 16-byte chunk XORed by the row."""
    if isinstance(row, int):
        flip: CInt = swizzled(row * width, width) ^ (row * width)
    else:
        shift, mask = {128: (0, 7), 64: (1, 3), 32: (2, 1)}[width]
        picked = f"{paren(row)} >> {shift} & {mask}" if shift else f"{paren(row)} & {mask}"
        flip = f"({picked}) << 4"
    if isinstance(within, int) and isinstance(flip, int):
        return within ^ flip
    if flip == 0:
        return within
    if within == 0:
        return paren(str(flip))
    return f"({paren(str(within))} ^ {paren(str(flip))})"


def _swizzled_address(cg: Context, linear: CInt, width: int) -> CInt:
    """XOR by the address itself, for tiles whose blocks do not start on a period."""
    if isinstance(linear, int):
        offset: int = swizzled(linear, width)
        return offset
    name = f"swizzle_{width}"
    code = f"""\
// TMA swizzle of {width} bytes: address bits from 4 are XORed with those from 7.
__device__ __forceinline__ int {name}(int offset) {{
  return offset ^ ((offset >> 3) & {width - 16:#x});
}}"""
    return f"{cg.helper(name, code)}({linear})"


def shared_address(base: CInt, offset: CInt) -> str:
    """The shared address (``unsigned``) ``offset`` bytes behind ``base``."""
    terms = ["smem", str(base)]
    if isinstance(offset, str):
        # Products and single values are unsigned through their literal; sums are cast as a whole.
        terms.append(offset if offset.endswith("u") else f"(unsigned){paren(offset)}")
    elif offset:
        terms.append(f"{offset}u")
    return f"({' + '.join(terms)})"


def global_offset(
    cg: Context, place: TensorRef, strides: Sequence[str], offset: Sequence[str]
) -> CInt:
    """Elements from the first one of a tensor to a place, in 64 bits.

    ``strides`` has the C text of each axis' stride but the last, which is 1.
    """
    extra = list(map(known, offset)) or [0] * len(place.index)
    terms: list[CInt] = []
    for axis, (index, more) in enumerate(zip(place.index, extra, strict=True)):
        at = total([integer(cg, index), more])
        if at == 0:
            continue
        if axis == len(place.index) - 1:
            terms.append(at)
        elif at == 1:
            terms.append(strides[axis])
        else:
            terms.append(f"(long long){paren(str(at))} * {strides[axis]}")
    return total(terms)
