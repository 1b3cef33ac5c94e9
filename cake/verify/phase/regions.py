"""Cells of shared and tensor memory as bits of an int, and parts of tensors as boxes.

Cells of a stage of a shared buffer are its elements in row-major order, so that a box of it is a
number made by a few shifts, and overlap is one ``&``. Views placed in a pool may overlap each
other's bytes: their cells are the bytes of the pool.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any, Literal

import numpy as np

from cake.ir.program import Smem
from cake.ops.layout import Placement, tile_offsets
from cake.verify.phase.events import Box, Region


@lru_cache(maxsize=4096)
def box_cells(shape: tuple[int, ...], offsets: tuple[int, ...], extents: tuple[int, ...]) -> int:
    """The cells of a box inside a row-major block; what lies outside the block is left out."""
    cells, stride = 1, 1
    for size, offset, extent in reversed(list(zip(shape, offsets, extents, strict=True))):
        low, high = max(0, offset), min(size, offset + extent)
        if low >= high:
            return 0
        cells = _repeated(cells, stride, high - low) << (low * stride)
        stride *= size
    return cells


def _repeated(cells: int, stride: int, times: int) -> int:
    """``cells`` and its copies shifted by multiples of ``stride``."""
    if cells == (1 << stride) - 1:
        return (1 << stride * times) - 1
    return cells * (((1 << stride * times) - 1) // ((1 << stride) - 1))


def listed_cells(size: int, cells: Any) -> int:
    """The cells of an int array; numbers outside [0, size) are left out."""
    flags = np.zeros(size, np.bool_)
    inside = cells[(cells >= 0) & (cells < size)]
    flags[inside] = True
    return int.from_bytes(np.packbits(flags, bitorder="little").tobytes(), "little")


def linear(shape: tuple[int, ...], coordinates: Sequence[Any]) -> Any:
    """Row-major number of elements; -1 where a coordinate lies outside."""
    number: Any = 0
    inside: Any = True
    for size, c in zip(shape, coordinates, strict=True):
        number = number * size + c
        inside = inside & (c >= 0) & (c < size)
    return np.where(inside, number, -1)


@lru_cache(maxsize=1024)
def pooled_cells(
    shape: tuple[int, ...], swizzle: int, dtype: Any, start: int, pool_bytes: int, cells: int
) -> int:
    """The bytes of a pool that cells of a buffer at byte ``start`` of it occupy."""
    count = prod(shape)
    raw = np.frombuffer(cells.to_bytes(-(-count // 8), "little"), np.uint8)
    chosen = np.flatnonzero(np.unpackbits(raw, bitorder="little")[:count])
    first = tile_offsets(shape, swizzle, dtype).reshape(-1)[chosen] + start
    each = (first[:, None] + np.arange(dtype.bytes)[None, :]).reshape(-1)
    return listed_cells(pool_bytes, each)


def in_pool(buffer: Smem, placed: Placement, stage: int, pool: int, size: int, cells: int) -> int:
    """Cells of a stage of a buffer as bytes of its pool, which starts at byte ``pool``."""
    start = placed.offset - pool + stage * placed.stage_bytes
    return pooled_cells(buffer.shape, buffer.swizzle, buffer.dtype, start, size, cells)


def points_box(coordinates: Sequence[Any], widths: Sequence[int]) -> Region:
    """The box around blocks of ``widths`` elements at points; exact if they fill it."""
    stacked = np.stack(np.broadcast_arrays(*coordinates))
    low, high = stacked.min(axis=1), stacked.max(axis=1)
    box = tuple((int(a), int(b) + w) for a, b, w in zip(low, high, widths, strict=True))
    distinct = len(np.unique(stacked, axis=1).T) * prod(widths)
    return Region(box, exact=distinct == prod(b - a for a, b in box))


def clipped(region: Region, shape: Sequence[int | None]) -> Region | None:
    """A box without what lies outside the tensor; None if nothing is left."""
    assert isinstance(region.cells, tuple)
    box: list[tuple[int, int]] = []
    for (low, high), size in zip(region.cells, shape, strict=True):
        low, high = max(low, 0), high if size is None else min(high, size)
        if low >= high:
            return None
        box.append((low, high))
    return Region(tuple(box), region.exact)


def overlap(a: Region, b: Region) -> Literal["no", "maybe", "yes"]:
    """Whether two regions of a block meet; "maybe" where that depends on data."""
    x, y = a.cells, b.cells
    if isinstance(x, int):
        assert isinstance(y, int)
        if not x & y:
            return "no"
        if a.exact and b.exact:
            return "yes"
        inside_b, inside_a = not x & ~y, not y & ~x
    else:
        assert isinstance(y, tuple)
        if not _boxes_meet(x, y):
            return "no"
        inside_b, inside_a = _box_inside(x, y), _box_inside(y, x)
    certain = (b.exact and (a.exact or inside_b)) or (a.exact and inside_a)
    return "yes" if certain else "maybe"


def covers(new: Region, old: Region) -> bool:
    """Whether nothing of ``old`` is left outside ``new``."""
    if not new.exact:
        return False
    if isinstance(new.cells, int) and isinstance(old.cells, int):
        return not old.cells & ~new.cells
    assert isinstance(new.cells, tuple)
    assert isinstance(old.cells, tuple)
    return _box_inside(old.cells, new.cells)


def _boxes_meet(a: Box, b: Box) -> bool:
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(a, b, strict=True))


def _box_inside(inner: Box, outer: Box) -> bool:
    return all(o[0] <= i[0] and i[1] <= o[1] for i, o in zip(inner, outer, strict=True))


def united(a: Region, b: Region) -> Region | None:
    """Both regions as one, where that says the same."""
    if a == b:
        return a
    alike = a.exact and b.exact and a.layout == b.layout
    if alike and isinstance(a.cells, int) and isinstance(b.cells, int):
        return a if not b.cells & ~a.cells else Region(a.cells | b.cells, layout=a.layout)
    return None
