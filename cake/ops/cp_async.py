"""``cp_async(view, place)`` and its groups: copies by the unit's threads (sm_80 and later).

cp.async writes shared memory through the generic proxy: data that wgmma or TMA reads needs a wait,
then ``fence_async``, then a barrier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import gcd, prod
from typing import Any

import numpy as np

from cake.ir.nodes import Call, Const, DimRef, Expr, TensorRef
from cake.ir.program import Program
from cake.ir.types import SmemView, Type, Void
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    SyncEffect,
    TypingContext,
    at,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.memory_access import pitch_of
from cake.ops.sync import define
from cake.ops.tiles import (
    check_multiple,
    extents,
    freeze,
    inside,
    open_sides,
    place_of,
    plus,
    tile_of,
    tile_offsets,
    typed_multiple,
    typed_tile,
)

_SOURCE = "PTX ISA 9.0, Data Movement and Conversion Instructions: cp.async"
LINE_BYTES = 128


def _typing(t: TypingContext, call: Call) -> Type:
    view, tile, place = typed_tile(t, *at(call, "view", "place"))
    size = static(call, "bytes")
    check.one_of(t, at(call, "bytes")[0], "bytes", t.target.cp_async_sizes)
    check.one_of(t, at(call, "zfill")[0], "zfill", (True, False))
    check.one_of(t, at(call, "clamp")[0], "clamp", (True, False))
    row = tile.shape[-1] * tile.dtype.bits // 8
    if row % size:
        t.fail(
            f"a row of the tile has {row} bytes, not a multiple of the {size} bytes of one copy",
            view,
            helps=("choose bytes=8 or bytes=4", "or make the rows of the tile longer"),
            facts={"row_bytes": row, "bytes": size},
        )
    pitch = pitch_of(t, view)
    if pitch % size:
        t.fail(
            f"rows of {view.base} are {pitch} bytes apart, not a multiple of {size}",
            view,
            helps=("choose bytes=8 or bytes=4", "or pad the rows"),
            facts={"pitch": pitch, "bytes": size},
        )
    per = size // tile.dtype.bytes
    typed_multiple(t, place.index[-1], per, "the last coordinate of the place")
    typed_multiple(t, view.offsets[-1], per, "the last offset of the tile")
    return Void()


def _effects(call: Call) -> Effects:
    return (
        Access("write", 0, "smem", "generic", "cp_async"),
        Access("read", 1, "global", "generic", "cp_async"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    (view, tile), place = tile_of(call.args[0]), place_of(call.args[1])
    per = static(call, "bytes") // tile.dtype.bytes
    check_multiple(unit, call, place.index[-1], per, "the last coordinate of the place")
    check_multiple(unit, call, view.offsets[-1], per, "the last offset of the tile")
    to, source = freeze(unit, view), freeze(unit, place)
    offsets = tile_offsets(call, tile.shape, len(place.index))
    fill = 0 if static(call, "zfill") else None

    if static(call, "clamp"):
        offsets = [*clamped(unit, place, offsets[:-1]), offsets[-1]]

    def fetch() -> Any:
        return unit.global_read(source, offsets, fill=fill)

    unit.issue("cp_async", fetch, lambda values: unit.smem_write(to, values))


def clamped(unit: Unit, place: TensorRef, offsets: list[Any]) -> list[Any]:
    """Offsets along the leading axes, moved back to the last row where they pass the end.

    Nothing moves rows in front of the tensor, so a negative coordinate is a finding.
    """
    out = []
    for axis, offset in enumerate(offsets):
        start = int(unit.eval(place.index[axis]))
        if start < 0:
            unit.fail(
                "CK502",
                f"cp_async: coordinate {start} of axis {axis} of {place.tensor} is negative",
                coordinate=start,
                axis=axis,
            )
        out.append(np.minimum(offset, unit.extent(place.tensor, axis) - 1 - start))
    return out


def _cost(call: Call, threads: int) -> Cost:
    _, tile = tile_of(call.args[0])
    size = prod(tile.shape) * tile.dtype.bytes
    copies = -(-size // (static(call, "bytes") * threads))
    return Cost(issue=copies * 6 * (threads // 32), smem=size, gmem_read=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    tile, place = tile_of(call.args[0])[1], place_of(call.args[1])
    size: int = static(call, "bytes")
    per = size // tile.dtype.bytes
    chunks = prod(tile.shape) // per
    cg.require_alignment(place.tensor, size)
    with cg.unrolled(-(-chunks // cg.unit_threads)):
        chunk = cg.fresh("chunk")
        cg.line(f"const int {chunk} = i * {cg.unit_threads} + unit_thread;")
        index = chunk_index(chunk, tile, per)
        if chunks % cg.unit_threads == 0:
            _emit_copy(cg, call, index, size)
        else:
            with cg.block(f"if ({chunk} < {chunks})"):
                _emit_copy(cg, call, index, size)


def chunk_index(chunk: str, tile: SmemView, per: int) -> list[str]:
    """Coordinates in the tile of the first element of a chunk; ``per`` elements make a chunk.

    Chunks are numbered row-major, so that neighbouring threads copy neighbouring bytes. Rows longer
    than a cache line are cut into blocks of a line's width, one block of columns after the other:
    then rows of 3 or 6 lines need no division by 3, and a thread meets few phases of the swizzle.
    """
    per_row = tile.shape[-1] // per
    width = gcd(per_row, max(LINE_BYTES // (per * tile.dtype.bytes), 1))
    column = f"{chunk} % {width} * {per}" if width > 1 else "0"
    outer = []
    inner = width
    for axis in reversed(range(len(tile.shape) - 1)):
        position = f"{chunk} / {inner}" if inner > 1 else chunk
        inner *= tile.shape[axis]
        last = axis == 0 and width == per_row
        outer.append(position if last else f"{position} % {tile.shape[axis]}")
    if width < per_row:
        column = f"{chunk} / {inner} * {width * per} + {column}"
    return [*outer[::-1], column]


def _emit_copy(cg: Emitter, call: Call, index: list[str], size: int) -> None:
    """One chunk. What may lie outside the tensor is filled with zeros."""
    (view, tile), place = tile_of(call.args[0]), place_of(call.args[1])
    offset = ["0"] * (len(place.index) - len(index)) + index
    to, source = cg.smem_address(view, index), _source(cg, place, offset, tile.dtype.bytes)
    open_axes = open_sides(cg.program, place, tile.shape) if static(call, "zfill") else ()
    if not open_axes:
        cg.line(f"{_helper(cg, size, zfill=False)}({to}, {source});")
        return
    if static(call, "clamp"):
        offset = [
            _clamped(cg, place, axis, o) if axis in open_axes else o
            for axis, o in enumerate(offset[:-1])
        ] + offset[-1:]
        source = _source(cg, place, offset, tile.dtype.bytes)
        open_axes = tuple(a for a in open_axes if a == len(offset) - 1)
        if not open_axes:
            cg.line(f"{_helper(cg, size, zfill=False)}({to}, {source});")
            return
    begins_inside = " && ".join(inside(cg, place, axis, offset[axis]) for axis in open_axes)
    if whole_chunks(cg.program, place.tensor, size // tile.dtype.bytes):
        cg.line(f"{_whole_helper(cg, size)}({to}, {source}, !({begins_inside}));")
        return
    valid = _valid_bytes(cg, place, offset[-1], size, tile.dtype.bytes)
    name = _helper(cg, size, zfill=True)
    cg.line(f"{name}({to}, {source}, {begins_inside} ? {valid} : 0);")


def _source(cg: Emitter, place: TensorRef, offset: list[str], size: int) -> str:
    """Address of a chunk: a pointer into its row, then the place's last coordinate in bytes.

    In a loop along the row only the latter moves. In a sum of elements the compiler joins it to the
    thread's own column first, and then adds and scales both anew for every copy.
    """
    *outer, last = place.index
    if isinstance(last, Const):
        return cg.global_pointer(place, offset)
    start = replace(place, index=(*outer, Const(value=0, type=last.type, loc=last.loc)))
    row, moved = cg.global_pointer(start, offset), cg.scalar(last)
    return f"(const char*){row} + (long long){moved} * {size}"


def whole_chunks(program: Program, tensor: str, per: int) -> bool:
    """Whether a chunk of ``per`` elements lies wholly inside or outside the last axis.

    True if the extent is a multiple of ``per``, by its value or by a ``require(DIM % n == 0)``.
    """
    dim = program.tensor(tensor).shape[-1]
    if isinstance(dim, int):
        return dim % per == 0
    return any(_multiple_required(g.cond, dim) % per == 0 for g in program.guards)


def _multiple_required(cond: Expr, dim: str) -> int:
    """n of the condition ``dim % n == 0``, 1 for any other condition."""
    if isinstance(cond, Call) and cond.op == "eq":
        left, right = cond.args
        if isinstance(left, Call) and left.op == "mod" and isinstance(right, Const):
            base, n = left.args
            named = isinstance(base, DimRef) and base.name == dim
            if named and isinstance(n, Const) and right.value == 0:
                return int(n.value)
    return 1


def _whole_helper(cg: Emitter, size: int) -> str:
    """A copy that is zero-filled as a whole: the predicate form costs no address arithmetic."""
    op = "cg.shared.global.L2::128B" if size == 16 else "ca.shared.global"
    name = f"cp_async_or_zero_{size}"
    code = f"""\
__device__ __forceinline__ void {name}(unsigned to, const void* from, bool zero) {{
  asm volatile(
      "{{ .reg .pred zero; setp.ne.b32 zero, %2, 0; "
      "cp.async.{op} [%0], [%1], {size}, zero; }}"
      ::"r"(to), "l"(from), "r"((int)zero) : "memory");
}}"""
    return cg.helper(name, code)


def _clamped(cg: Emitter, place: TensorRef, axis: int, offset: str) -> str:
    """An offset moved back so that the coordinate does not pass the end of the axis."""
    start = cg.coordinate(place)[axis]
    return f"min({offset}, {cg.extent(place.tensor, axis)} - 1 - ({start}))"


def _valid_bytes(cg: Emitter, place: TensorRef, offset: str, size: int, element: int) -> str:
    """How much of a chunk that begins inside the tensor lies inside it."""
    last = len(place.index) - 1
    per = size // element
    extent = extents(cg.program, place.tensor)[last]
    if extent is not None and extent % per == 0:
        return str(size)
    left = f"{cg.extent(place.tensor, last)} - ({plus(cg.coordinate(place)[last], offset)})"
    return f"min((int)({left}), {per}) * {element}"


def _helper(cg: Emitter, size: int, *, zfill: bool) -> str:
    # .cg keeps the data out of L1 but exists for 16 bytes only.
    op = "cg.shared.global.L2::128B" if size == 16 else "ca.shared.global"
    name = f"cp_async_zfill_{size}" if zfill else f"cp_async_{size}"
    parameter, operand, value = (", int valid", ", %2", ', "r"(valid)') if zfill else ("", "", "")
    code = f"""\
__device__ __forceinline__ void {name}(unsigned to, const void* from{parameter}) {{
  asm volatile("cp.async.{op} [%0], [%1], {size}{operand};"
               ::"r"(to), "l"(from){value} : "memory");
}}"""
    return cg.helper(name, code)


def wait_all(cg: Emitter) -> str:
    """Wait for every cp.async of this thread, as one C++ statement."""
    code = """\
__device__ __forceinline__ void cp_async_wait_all() {
  asm volatile("cp.async.wait_all;" ::: "memory");
}"""
    return f"{cg.helper('cp_async_wait_all', code)}();"


register(
    Primitive(
        name="cp_async",
        params=(
            Param("view", "place"),
            Param("place", "place"),
            Param("zfill", "static", True, keyword_only=True),
            Param("bytes", "static", 16, keyword_only=True),
            Param("clamp", "static", False, keyword_only=True),
        ),
        doc="Start copying the tile at `place` into `view`, `bytes` (4, 8 or 16) at a time, shared"
        " among the threads of the unit. With zfill, elements outside the tensor become zero;"
        " without it there must be none. With clamp, rows beyond the tensor repeat its last row"
        " instead, which costs nothing in a loop; they must not matter. The tensor's address and"
        " outer strides are multiples of `bytes` (guarded at launch), the last coordinate is a"
        " multiple of a chunk. Complete after cp_async_wait, or at the commit of the ring whose"
        " slot is filled.",
        source=_SOURCE,
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="cp_async",
        convergent=True,
    )
)


# -- groups ----------------------------------------------------------------------------------------


def _wait_typing(t: TypingContext, call: Call) -> None:
    check.static_int(t, call.args[0], "the number of pending groups", 0, 63)


def _commit_meaning(unit: Unit, call: Call) -> None:
    unit.commit("cp_async")


def _wait_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    pending: int = static(call, "pending")
    what = f"cp.async groups, {pending} pending"
    yield Wait(lambda: unit.drained("cp_async", pending), what, drains=True)


def _emit_commit(cg: Emitter, call: Call) -> None:
    code = """\
__device__ __forceinline__ void cp_async_commit() {
  asm volatile("cp.async.commit_group;" ::: "memory");
}"""
    cg.line(f"{cg.helper('cp_async_commit', code)}();")


def _emit_wait(cg: Emitter, call: Call) -> None:
    code = """\
template <int pending>
__device__ __forceinline__ void cp_async_wait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}"""
    cg.line(f"{cg.helper('cp_async_wait', code)}<{static(call, 'pending')}>();")


define(
    "cp_async_commit",
    SyncEffect("commit", "cp_async"),
    doc="Close the group of the cp_async issued since the last commit (an empty one counts).",
    source=_SOURCE + ".commit_group",
    meaning=_commit_meaning,
    emit=_emit_commit,
    requires="cp_async",
    convergent=False,
)
define(
    "cp_async_wait",
    SyncEffect("drain", "cp_async"),
    params=(Param("pending", "static"),),
    doc="Wait until at most `pending` of this thread's newest cp_async groups are unfinished."
    " Other threads' copies are visible after a barrier of the unit.",
    source=_SOURCE + ".wait_group",
    typing=_wait_typing,
    meaning=_wait_meaning,
    emit=_emit_wait,
    requires="cp_async",
    convergent=False,
)
