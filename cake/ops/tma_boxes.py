"""How a tile is cut into the boxes of TMA copies (PTX ISA, "Tensors"; cuTensorMapEncodeTiled).

A box is at most 256 elements long in each dimension, and at most the swizzle span wide. It fills
consecutive rows in shared memory, so a wider swizzled tile takes one box for each of its column
blocks, and a higher one several boxes on top of each other.

A multicast copy is shared out over the cluster: CTA r loads slice r of the tile's outermost axis
and multicasts it to the same place in every CTA, so each CTA receives the whole tile.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from math import prod

from cake.ir.dtypes import I64
from cake.ir.nodes import Call, Const, Expr, TensorRef, View
from cake.ir.program import Cluster, Smem
from cake.ir.types import Scalar, SmemView
from cake.ops.base import Param, TypingContext, operand, static
from cake.ops.emit import Emitter
from cake.ops.findings import MISALIGNED_VIEW
from cake.ops.machine import Unit
from cake.ops.tiles import plus, tile_axes, tile_extents, tile_of, typed_tile

BOX_MAX = 256
SWIZZLE_ROWS = 8
"""Rows after which every swizzle pattern repeats."""
SMEM_ALIGNMENT = 128
AXES = Param("axes", "static", None, keyword_only=True)
"""The axes of the tensor that those of the view run along; by default its last ones."""


@dataclass(frozen=True, slots=True)
class Boxes:
    """Equal boxes that cover a tile: their shape and their offsets in it, one entry an axis."""

    shape: tuple[int, ...]
    offsets: tuple[tuple[int, ...], ...]


def boxes(shape: tuple[int, ...], tile: SmemView, buffer: tuple[int, ...]) -> Boxes | str:
    """Cut ``shape`` (a tile or a multicast slice of it) into boxes, or say why it cannot be done.

    ``buffer`` is the shape of the whole buffer: rows of the tile follow one another in shared
    memory only as far as the inner axes are whole.
    """
    whole = buffer[len(buffer) - len(shape) :]
    columns = shape[-1]
    if tile.swizzle:
        width = tile.swizzle // tile.dtype.bytes
        if columns % width:
            return f"rows of {columns} elements are not whole swizzle blocks of {width}"
    elif len(shape) > 1 and columns > BOX_MAX:
        return f"rows of {columns} elements are longer than a box ({BOX_MAX}) and not swizzled"
    else:
        width = _divisor(columns)
    box = [1] * (len(shape) - 1) + [width]
    consecutive = bool(tile.swizzle) or columns == whole[-1]
    for axis in reversed(range(len(shape) - 1)):
        if not consecutive:
            break
        box[axis] = _divisor(shape[axis])
        consecutive = box[axis] == whole[axis]
    if width * tile.dtype.bits // 8 % 16:
        return f"a box row of {width * tile.dtype.bits // 8} bytes is not a multiple of 16"
    steps = (range(0, n, b) for n, b in zip(shape, box, strict=True))
    offsets = tuple(product(*steps))
    misplaced = _misplaced(box, shape, tile)
    return misplaced or Boxes(tuple(box), offsets)


def _misplaced(box: list[int], shape: tuple[int, ...], tile: SmemView) -> str | None:
    """Why boxes on top of each other would start at addresses that TMA does not take."""
    rows = prod(box[:-1])
    if rows == prod(shape[:-1]) and (tile.swizzle or box[-1] == shape[-1]):
        return None
    if tile.swizzle and rows % SWIZZLE_ROWS:
        return f"boxes of {rows} rows break the swizzle, which repeats after {SWIZZLE_ROWS}"
    size = prod(box) * tile.dtype.bits // 8
    if size % SMEM_ALIGNMENT:
        return f"boxes of {size} bytes leave the next one off the {SMEM_ALIGNMENT}-byte alignment"
    return None


def _divisor(n: int) -> int:
    """The largest divisor of ``n`` that a box dimension admits."""
    return next(d for d in range(min(n, BOX_MAX), 0, -1) if n % d == 0)


def slice_of(shape: tuple[int, ...], parts: int) -> tuple[int, ...]:
    """One of ``parts`` equal slices along the outermost axis."""
    return (shape[0] // parts, *shape[1:])


def cluster_parts(call: Call, resources: tuple[object, ...]) -> int:
    """How many CTAs share the copy out: the cluster's size if it is multicast, else 1."""
    if not static(call, "multicast"):
        return 1
    return next((c.size for c in resources if isinstance(c, Cluster)), 1)


def typed_boxes(
    t: TypingContext, call: Call, view: Expr | None, place: Expr | None, parts: int = 1
) -> tuple[View, TensorRef]:
    """Check the operands of a TMA copy of a tile, shared out over ``parts`` CTAs."""
    e, tile, p = typed_tile(t, view, place)
    _typed_axes(t, call, len(tile.shape), len(p.index))
    limits = t.target.tma
    if limits is not None and tile.dtype.name not in limits.element_types:
        t.fail(f"TMA does not move {tile.dtype}", e)
    if len(p.index) > 5:
        t.fail(f"a tensor map has at most 5 axes, {p.tensor} has {len(p.index)}", p)
    if tile.shape[0] % parts:
        t.fail(
            f"the outermost extent {tile.shape[0]} does not divide among the {parts} CTAs"
            " of the cluster",
            e,
            facts={"extent": tile.shape[0], "cluster": parts},
        )
    buffer = t.resource(e.base)
    assert isinstance(buffer, Smem)
    cut = boxes(slice_of(tile.shape, parts), tile, buffer.shape)
    if isinstance(cut, str):
        t.fail(f"the tile cannot be copied by TMA: {cut}", e)
    _typed_origin(t, e, tile, buffer)
    return e, p


def _typed_axes(t: TypingContext, call: Call, tile: int, rank: int) -> None:
    axes = static(call, "axes")
    if axes is None:
        return
    numbers = isinstance(axes, tuple) and all(type(axis) is int for axis in axes)
    ascending = numbers and list(axes) == sorted(set(axes))
    if not ascending or len(axes) != tile or axes[0] < 0 or axes[-1] != rank - 1:
        t.fail(
            f"axes must name, in ascending order, {tile} axes of a tensor of {rank}, its last one"
            f" among them; got {axes}",
            operand(call, "axes"),
            helps=(f"write axes=(0, {rank - 1})",) if tile == 2 else (),
        )


def _typed_origin(t: TypingContext, e: View, tile: SmemView, buffer: Smem) -> None:
    """A compile-time origin of the view is one that TMA takes."""
    if not all(isinstance(o, Const) for o in e.offsets):
        return
    problem = origin_problem([int(o.value) for o in e.offsets if isinstance(o, Const)], buffer)
    if problem:
        t.fail(problem, e, helps=("move the start of the view",))


def origin_problem(offsets: list[int], buffer: Smem) -> str | None:
    """Why a view with these offsets starts where TMA cannot write, None if it can."""
    *lead, column = offsets
    row = 0
    for start, extent in zip(lead, buffer.shape[:-1], strict=True):
        row = row * extent + start
    if not buffer.swizzle:
        at = (row * buffer.shape[-1] + column) * buffer.dtype.bits // 8
        if at % SMEM_ALIGNMENT:
            return f"the tile starts at byte {at} of its stage, not a multiple of {SMEM_ALIGNMENT}"
        return None
    if row % SWIZZLE_ROWS:
        return f"the tile starts at row {row}, inside a swizzle pattern of {SWIZZLE_ROWS} rows"
    block = buffer.swizzle // buffer.dtype.bytes
    if column % block:
        return f"the tile starts at column {column}, inside a swizzle block of {block}"
    return None


def check_origin(unit: Unit, call: Call, view: View) -> None:
    """A finding if the view of a TMA copy starts where TMA cannot reach it."""
    buffer = unit.resource(view.base)
    assert isinstance(buffer, Smem)
    problem = origin_problem([int(unit.eval(o)) for o in view.offsets], buffer)
    if problem:
        unit.fail(MISALIGNED_VIEW, f"{call.op}: {problem}", primitive=call.op)


def tma_copies(
    cg: Emitter,
    call: Call,
    view: View,
    place: TensorRef,
    parts: int = 1,
    outside: str = "zero",
) -> Iterator[tuple[str, str, list[str]]]:
    """(tensor map, shared address, coordinates innermost first) of each box, as C expressions."""
    tile = tile_of(view)[1]
    buffer = cg.resource(view.base)
    assert isinstance(buffer, Smem)
    part = slice_of(tile.shape, parts)
    cut = boxes(part, tile, buffer.shape)
    assert isinstance(cut, Boxes)
    rank = len(place.index)
    box = tile_extents(call, cut.shape, rank)
    tensor_map = cg.tensor_map(place.tensor, box, tile.swizzle, outside)
    axes = tile_axes(call, len(tile.shape), rank)
    starts = cg.coordinate(place)
    narrow = ["(int)" if i.type == Scalar(I64) else "" for i in place.index]
    for offset in cut.offsets:
        index = [str(o) for o in offset]
        if parts > 1:
            index[0] = f"(int)cta_rank * {part[0]}" + (f" + {offset[0]}" if offset[0] else "")
        along = dict(zip(axes, index, strict=True))
        coordinates = [
            f"{cast}({moved})" if cast else moved
            for axis, (cast, start) in enumerate(zip(narrow, starts, strict=True))
            for moved in (plus(start, along.get(axis, "0")),)
        ]
        yield tensor_map, cg.smem_address(view, index), coordinates[::-1]
