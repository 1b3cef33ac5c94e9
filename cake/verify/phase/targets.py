"""The operands of accesses, made ready to be evaluated at any sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace

from cake.ir.nodes import Call, Expr, TensorRef, View
from cake.ir.program import Program, Smem, Tmem
from cake.ir.types import (
    ColVector,
    Fragment,
    RegArray,
    RowVector,
    SmemView,
    TmemView,
    Type,
)
from cake.ops.base import Access as Effect
from cake.ops.base import lookup, static
from cake.ops.tiles import tile_extents, tile_of
from cake.verify.phase.scalars import UNKNOWN, Compiled, Compiler
from cake.verify.phase.unit import Beyond

WARPS = 4
"""Warps of a warpgroup, over which its fragments are distributed by rows."""


@dataclass(frozen=True, slots=True)
class Target:
    """The operand of an access, ready to be evaluated.

    ``shape`` is that of the block, ``extents`` those of the access, one for each of its axes.
    ``split`` is the axis along which the four warps of a warpgroup share the access. ``chunk``: a
    cp.async copies the tile in chunks of so many elements, dealt out over the threads.
    """

    name: str
    stage: Compiled | None
    offsets: tuple[Compiled, ...]
    shape: tuple[int, ...]
    extents: tuple[int, ...]
    split: int | None
    chunk: int | None
    mask: Compiled | None
    peer: Compiled | None


class Targets:
    """The targets of a program's accesses, each made once."""

    def __init__(self, program: Program, compiler: Compiler) -> None:
        self.program = program
        self.compiler = compiler
        self._made: dict[tuple[int, int, int], Target] = {}

    def of(self, call: Call, effect: Effect) -> Target:
        """The place of an access."""
        key = (id(call), effect.operand, -1)
        if key not in self._made:
            self._made[key] = self._target(call, effect)
        return self._made[key]

    def sliced(self, call: Call, effect: Effect, parts: int, rank: int) -> Target:
        """Slice ``rank`` of ``parts`` equal slices of a target along its outermost axis."""
        key = (id(call), effect.operand, rank)
        if key not in self._made:
            whole = self.of(call, effect)
            axis = len(whole.extents) - len(tile_of(call.args[effect.operand])[1].shape)
            rows = whole.extents[axis] // parts
            first = whole.offsets[axis]
            offsets, extents = list(whole.offsets), list(whole.extents)
            offsets[axis] = lambda u: UNKNOWN if first(u) is UNKNOWN else first(u) + rank * rows
            extents[axis] = rows
            self._made[key] = replace(whole, offsets=tuple(offsets), extents=tuple(extents))
        return self._made[key]

    def _target(self, call: Call, effect: Effect) -> Target:
        place = call.args[effect.operand]
        compiled = self.compiler.compile
        mask, peer = (_optional(call, name) for name in ("mask", "peer"))
        split = chunk = None
        if isinstance(place, View):
            decl = self.program.resource(place.base)
            assert isinstance(decl, Smem | Tmem)
            shape = decl.shape
            split = _split(call, place.type, len(shape))
            if isinstance(place.type, TmemView):
                return self._tmem(call, place, decl)
            assert isinstance(place.type, SmemView)
            extents = (1,) * (len(shape) - len(place.type.shape)) + place.type.shape
            offsets = tuple(map(compiled, place.offsets))
            if call.op == "cp_async":
                chunk = static(call, "bytes") // place.type.dtype.bytes
            stage = None if place.stage is None else compiled(place.stage)
        elif isinstance(place, TensorRef):
            extents = _tensor_extents(call, place)
            shape, stage = (), None
            offsets = tuple(map(compiled, place.index))
            split = _split(call, None, len(extents))
        else:
            raise Beyond(f"an access of {call.op} to {type(place).__name__}")
        return Target(
            name=place.base if isinstance(place, View) else place.tensor,
            stage=stage,
            offsets=offsets,
            shape=tuple(shape),
            extents=extents,
            split=split,
            chunk=chunk,
            mask=None if mask is None else compiled(mask),
            peer=None if peer is None else compiled(peer),
        )

    def _tmem(self, call: Call, place: View, decl: Smem | Tmem) -> Target:
        """Tensor memory as (quarter of the lanes, column): warp w reaches quarter w."""
        column, width = 0, decl.shape[1]
        if call.op == "tcgen05_ld":
            column, width = int(static(call, "column")), int(static(call, "width"))
        return Target(
            name=decl.name,
            stage=None if place.stage is None else self.compiler.compile(place.stage),
            offsets=(lambda u: 0, lambda u: column),
            shape=(WARPS, decl.shape[1]),
            extents=(WARPS, width),
            split=0 if call.op == "tcgen05_ld" else None,
            chunk=None,
            mask=None,
            peer=None,
        )


def _optional(call: Call, name: str) -> Expr | None:
    primitive = lookup(call.op)
    assert primitive is not None
    names = [p.name for p in primitive.params]
    return call.args[names.index(name)] if name in names else None


def _moved(call: Call) -> Type | None:
    """The type of what lies in registers, if it is distributed over the unit."""
    types = [call.type, *(a.type for a in call.args if a is not None)]
    return next((t for t in types if isinstance(t, Fragment | RowVector | ColVector)), None)


def _split(call: Call, view: Type | None, rank: int) -> int | None:
    """The axis of a place along which the rows of a warpgroup's fragment run."""
    moved = _moved(call)
    if call.op == "wgmma" or not isinstance(moved, Fragment | RowVector) or moved.warps != WARPS:
        return None
    if isinstance(moved, RowVector):
        return rank - 1
    flipped = isinstance(view, SmemView) and view.transposed
    return rank - 1 if flipped else rank - 2


def _tensor_extents(call: Call, place: TensorRef) -> tuple[int, ...]:
    """Extents of an access along the axes of a tensor, per thread or for the whole tile."""
    tile: tuple[int, ...] = ()
    moved = _moved(call)
    view = next((a for a in call.args if isinstance(a, View)), None)
    array = next(
        (a.type for a in call.args if a is not None and isinstance(a.type, RegArray)), None
    )
    if view is not None and isinstance(view.type, SmemView):
        tile = view.type.shape
    elif isinstance(moved, Fragment):
        tile = moved.shape
    elif isinstance(moved, RowVector):
        tile = (moved.rows,)
    elif isinstance(moved, ColVector):
        tile = (moved.cols,)
    elif isinstance(call.type, RegArray):
        tile = (call.type.length,)
    elif array is not None:
        tile = (array.length,)
    return tile_extents(call, tile, len(place.index))
