"""Copies of a tile between shared memory and a global tensor: what TMA, bulk and cp.async share.

The axes of the view run along the last axes of the tensor, or along those that ``axes`` names; the
tile has extent 1 along the others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from cake.ir.dtypes import I32, I64
from cake.ir.nodes import Call, Const, Expr, Static, TensorRef, View
from cake.ir.program import Program, WorkspaceDecl
from cake.ir.types import Scalar, SmemView
from cake.ops import check
from cake.ops.base import TypingContext, lookup, static
from cake.ops.emit import Emitter
from cake.ops.findings import MISALIGNED_VIEW
from cake.ops.machine import Unit

E = TypeVar("E", View, TensorRef)


def tile_of(e: Expr | None) -> tuple[View, SmemView]:
    """A view operand that typing has accepted, with its type."""
    assert isinstance(e, View)
    assert isinstance(e.type, SmemView)
    return e, e.type


def logical_shape(t: SmemView) -> tuple[int, ...]:
    """The extents of a view as it is indexed, after transposition."""
    return (*t.shape[:-2], t.shape[-1], t.shape[-2]) if t.transposed else t.shape


def view_bytes(view: View) -> int:
    """Bytes of a shared-memory tile."""
    assert isinstance(view.type, SmemView)
    bits = view.type.dtype.bits
    for extent in view.type.shape:
        bits *= extent
    return bits // 8


def place_of(e: Expr | None) -> TensorRef:
    """A place operand that typing has accepted."""
    assert isinstance(e, TensorRef)
    return e


def typed_tile(
    t: TypingContext, view: Expr | None, place: Expr | None
) -> tuple[View, SmemView, TensorRef]:
    """Operands of a tile copy: a view, untransposed, and a uniform place of its element type."""
    e, tile = check.smem(t, view, "the tile")
    assert isinstance(e, View)
    if not isinstance(place, TensorRef):
        got = "nothing" if place is None else check.describe(place)
        t.fail(f"the place must be a coordinate of a global tensor, got {got}", place)
    if tile.transposed:
        t.fail("the tile is transposed, but a copy moves rows as they are", e)
    if not tile.shape:
        t.fail("the tile is a single element", e, helps=("use load and store for elements",))
    if tile.dtype != place.type.dtype:  # type: ignore[attr-defined]
        t.fail(f"the tile holds {tile.dtype}, the tensor {place.type.dtype}", e)  # type: ignore[attr-defined]
    if len(tile.shape) > len(place.index):
        t.fail(
            f"the tile has {len(tile.shape)} axes, {place.tensor} only {len(place.index)}",
            e,
            facts={"tile_rank": len(tile.shape), "tensor_rank": len(place.index)},
        )
    for i in (*place.index, *e.offsets):
        check.uniform(t, i, "a coordinate of a tile")
    return e, tile, place


def typed_multiple(t: TypingContext, e: Expr, unit: int, what: str) -> None:
    """A compile-time offset is a multiple of ``unit``; run-time ones are left to the simulator."""
    if isinstance(e, Const | Static) and isinstance(e.value, int) and e.value % unit:
        t.fail(
            f"{what} must be a multiple of {unit}, got {e.value}",
            e,
            facts={"value": e.value, "multiple_of": unit},
        )


def freeze(unit: Unit, e: E) -> E:
    """A view or place with its offsets as numbers, for a copy that reads them later.

    An asynchronous copy uses the coordinates of its issue, whatever the variables become.
    """
    if isinstance(e, View):
        stage = None if e.stage is None else _number(unit, e.stage)
        return replace(e, stage=stage, offsets=tuple(_number(unit, o) for o in e.offsets))
    return replace(e, index=tuple(_number(unit, i) for i in e.index))


def _number(unit: Unit, e: Expr) -> Const:
    kind = e.type if isinstance(e.type, Scalar) else Scalar(I32)
    return Const(value=int(unit.eval(e)), type=kind, loc=e.loc)


def tile_axes(call: Call, tile: int, rank: int) -> tuple[int, ...]:
    """The axes of a tensor of ``rank`` axes that the ``tile`` axes of a copied view run along."""
    primitive = lookup(call.op)
    assert primitive is not None
    named = static(call, "axes") if any(p.name == "axes" for p in primitive.params) else None
    return tuple(range(rank - tile, rank)) if named is None else named


def tile_extents(call: Call, shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """Extents of a tile of ``shape`` along each of the tensor's axes."""
    along = dict(zip(tile_axes(call, len(shape), rank), shape, strict=True))
    return tuple(along.get(axis, 1) for axis in range(rank))


def tile_offsets(call: Call, shape: tuple[int, ...], rank: int) -> list[Any]:
    """Offset of every tile element along each of the tensor's axes: arrays of ``shape``."""
    made = [np.zeros(shape, np.int64)] * rank
    for axis, along in zip(tile_axes(call, len(shape), rank), np.indices(shape), strict=True):
        made[axis] = along
    return made


def extents(program: Program, tensor: str) -> tuple[int | None, ...]:
    """Extents of a tensor parameter or a workspace; None where known only at run time."""
    for p in program.tensors:
        if p.name == tensor:
            return tuple(d if isinstance(d, int) else None for d in p.shape)
    scratch = program.resource(tensor)
    assert isinstance(scratch, WorkspaceDecl)
    return tuple(int(e.value) if isinstance(e, Const) else None for e in scratch.shape)


def open_sides(program: Program, place: TensorRef, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Axes of the tensor along which a tile of ``shape`` at ``place`` may leave it."""
    dims = extents(program, place.tensor)
    sizes = (1,) * (len(dims) - len(shape)) + shape
    return tuple(
        axis
        for axis, (dim, size, start) in enumerate(zip(dims, sizes, place.index, strict=True))
        if dim is None or not isinstance(start, Const) or not 0 <= start.value <= dim - size
    )


def plus(start: str, offset: str) -> str:
    """C sum of a coordinate and an offset, without what is plainly zero."""
    if offset == "0" or start == "0":
        return start if offset == "0" else offset
    if start.isdecimal() and offset.isdecimal():
        return str(int(start) + int(offset))
    return f"{start} + {offset}"


def inside(cg: Emitter, place: TensorRef, axis: int, offset: str) -> str:
    """C condition: coordinate ``axis`` of ``place`` plus ``offset`` lies inside the tensor.

    Compared as unsigned numbers, so that one comparison rejects negative coordinates too.
    """
    wide = place.index[axis].type == Scalar(I64)
    unsigned = "unsigned long long" if wide else "unsigned"
    position = plus(cg.coordinate(place)[axis], offset)
    return f"({unsigned})({position}) < ({unsigned}){cg.extent(place.tensor, axis)}"


def check_multiple(unit: Unit, call: Call, e: Expr, multiple: int, what: str) -> None:
    """A finding if a run-time offset is not the multiple that the instruction needs."""
    values = np.asarray(unit.eval(e)) % multiple
    bad = values[unit.mask] if values.ndim else values
    if bad.any():
        unit.fail(
            MISALIGNED_VIEW,
            f"{call.op}: {what} must be a multiple of {multiple}",
            primitive=call.op,
            multiple_of=multiple,
        )
