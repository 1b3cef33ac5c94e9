"""Addresses in C++: shared memory with its swizzle, global memory with 64-bit strides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gcd, prod
from typing import Protocol

from cake.codegen.cuda_text import CInt, known, paren, scaled, total
from cake.ir.nodes import Call, Const, Expr, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import SmemView
from cake.ops.layout import Placement, swizzle_period, swizzled

PERIOD_ROWS = 8
"""Rows of a column block after which every swizzle repeats."""


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


@dataclass(frozen=True, slots=True)
class _Along:
    """Where an element lies along one axis of a buffer.

    ``offset`` is the view's, a known multiple of ``unit``; ``index`` is the place in the view,
    which has ``extent`` elements. ``pitch`` counts rows from one position to the next.
    """

    offset: CInt
    index: CInt
    extent: int
    unit: int
    pitch: int

    @property
    def position(self) -> CInt:
        return total([self.offset, self.index])


def element_offset(cg: Context, view: View, buffer: Smem, index: Sequence[CInt]) -> CInt:
    """Bytes from the stage's first byte to an element of the view, swizzle applied.

    ``index`` has one entry for each logical axis of the view, or is empty for its origin.
    """
    axes = _axes(cg, view, buffer, index)
    size = buffer.dtype.bytes
    row = total(scaled(axis.position, axis.pitch) for axis in axes[:-1])
    if not buffer.swizzle:
        return scaled(total([scaled(row, buffer.shape[-1]), axes[-1].position]), size)
    block, within = _column(axes[-1], buffer)
    block_bytes = prod(buffer.shape[:-1]) * buffer.swizzle
    start = total([scaled(block, block_bytes), scaled(row, buffer.swizzle)])
    if block_bytes % swizzle_period(buffer.swizzle):
        return _swizzled_address(cg, total([start, within]), buffer.swizzle)
    # Blocks start on a period, so the XOR depends on the row alone, and of the row only on what
    # is not known to be whole periods.
    turning = total(_turning(axis) for axis in axes[:-1])
    return total([start, _xored(within, turning, buffer.swizzle)])


def _axes(cg: Context, view: View, buffer: Smem, index: Sequence[CInt]) -> list[_Along]:
    assert isinstance(view.type, SmemView)
    inside = list(index) or [0] * len(view.type.shape)
    if view.type.transposed:
        inside[-2:] = reversed(inside[-2:])
    dropped = len(buffer.shape) - len(inside)
    return [
        _Along(
            offset=integer(cg, view.offsets[axis]),
            index=0 if axis < dropped else inside[axis - dropped],
            extent=1 if axis < dropped else view.type.shape[axis - dropped],
            unit=_multiple_of(view.offsets[axis]),
            pitch=prod(buffer.shape[axis + 1 : -1]),
        )
        for axis in range(len(buffer.shape))
    ]


def _multiple_of(e: Expr) -> int:
    """A number that an integer expression is known to be a multiple of; 0 for zero itself."""
    if isinstance(e, Const):
        return abs(int(e.value))
    if isinstance(e, Call) and e.op in ("add", "sub", "mul"):
        a, b = (0 if x is None else _multiple_of(x) for x in e.args[:2])
        return a * b if e.op == "mul" else gcd(a, b)
    return 1


def _turning(axis: _Along) -> CInt:
    """What an axis adds to the row, modulo the rows after which the swizzle repeats."""
    if axis.pitch % PERIOD_ROWS == 0:
        return 0
    offset = 0 if axis.unit * axis.pitch % PERIOD_ROWS == 0 else axis.offset
    return scaled(total([offset, axis.index]), axis.pitch)


def _column(axis: _Along, buffer: Smem) -> tuple[CInt, CInt]:
    """The column block of an element, and its byte within the block's row."""
    width, size = buffer.swizzle, buffer.dtype.bytes
    within = scaled(axis.position, size)
    if isinstance(axis.offset, int):
        first, last = axis.offset * size, (axis.offset + axis.extent) * size - 1
        if first // width == last // width:
            return first // width, total([first % width, scaled(axis.index, size)])
    if isinstance(within, int):
        return divmod(within, width)
    if buffer.shape[-1] * size <= width:
        return 0, within
    shift = width.bit_length() - 1
    return f"({paren(within)} >> {shift})", f"({paren(within)} & {width - 1})"


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
