"""TMA copies from shared memory into a tensor: store, reduce-add, and their bulk groups.

One thread of the unit issues, commits and waits, always the same one. The tile must have been
written through the async proxy's eyes before: ``fence_async()`` by the writers, then
``unit_sync()``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import prod
from typing import Any, Literal

import numpy as np

from cake.ir.dtypes import BF16, F16, F32, I32, U32, DType
from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    SyncEffect,
    TypingContext,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import define
from cake.ops.tiles import freeze, place_of, tile_of, tile_offsets
from cake.ops.tma_boxes import AXES, check_origin, tma_copies, typed_boxes
from cake.ops.unit_sync import emit_unit_sync, mean_unit_sync

REDUCED: tuple[DType, ...] = (F32, F16, BF16, I32, U32)
"""Element types that TMA adds (PTX ISA, cp.reduce.async.bulk.tensor)."""


def _typing(t: TypingContext, call: Call) -> Type:
    view, _ = typed_boxes(t, call, call.args[1], call.args[0])
    if call.op == "tma_reduce_add" and check.smem(t, view, "the tile")[1].dtype not in REDUCED:
        names = ", ".join(d.name for d in REDUCED)
        t.fail(f"TMA adds {names}, not {check.describe(view)}", view)
    return Void()


def _effects(action: Literal["write", "atomic"]) -> Callable[[Call], Effects]:
    def effects(call: Call) -> Effects:
        return (
            Access("read", 1, "smem", "async", "bulk_group"),
            Access(action, 0, "global", "async", "bulk_group"),
        )

    return effects


def _meaning(unit: Unit, call: Call) -> None:
    place, (view, tile) = place_of(call.args[0]), tile_of(call.args[1])
    check_origin(unit, call, view)
    to, source = freeze(unit, place), freeze(unit, view)
    offsets = tile_offsets(call, tile.shape, len(place.index))

    def land(values: Any) -> None:
        if call.op == "tma_store":
            unit.global_write(to, values, offsets, clip=True, proxy="async")
        else:
            unit.global_update(to, values, offsets, _add, clip=True)

    unit.issue("bulk_group", lambda: unit.smem_read(source, proxy="async"), land)


def _add(old: Any, value: Any) -> Any:
    """One element's sum in its own type; floats round to nearest even."""
    with np.errstate(over="ignore"):
        return (old + value).astype(np.asarray(old).dtype)


def _cost(call: Call, threads: int) -> Cost:
    _, tile = tile_of(call.args[1])
    size = prod(tile.shape) * tile.dtype.bits // 8
    return Cost(issue=4 * (threads // 32), smem=size, gmem_write=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    place, view = place_of(call.args[0]), tile_of(call.args[1])[0]
    name = _helper(cg, call.op, len(place.index))
    with cg.elected():
        for tensor_map, source, coordinates in tma_copies(cg, call, view, place):
            cg.line(f"{name}({tensor_map}, {source}, {', '.join(coordinates)});")


def _helper(cg: Emitter, op: str, rank: int) -> str:
    name = f"{op}_{rank}d"
    head, tail = ("cp.async", "") if op == "tma_store" else ("cp.reduce.async", ".add")
    box = ", ".join(f"%{2 + i}" for i in range(rank))
    coordinates = ", ".join(f"int c{i}" for i in range(rank))
    operands = ", ".join(f'"r"(c{i})' for i in range(rank))
    code = f"""\
__device__ __forceinline__ void {name}(const void* map, unsigned from, {coordinates}) {{
  asm volatile(
      "{head}.bulk.tensor.{rank}d.global.shared::cta{tail}.tile.bulk_group "
      "[%0, {{{box}}}], [%1];"
      ::"l"(map), "r"(from), {operands} : "memory");
}}"""
    return cg.helper(name, code)


_PARAMS = (Param("place", "place"), Param("view", "place"), AXES)
_SOURCE = "PTX ISA 9.0, cp.async.bulk.tensor"

register(
    Primitive(
        name="tma_store",
        params=_PARAMS,
        doc="One thread starts TMA copies of `view` to the tile at `place`; elements outside the"
        " tensor are dropped. `axes` as for tma_load. Part of the group that tma_store_commit"
        " closes.",
        source=_SOURCE,
        typing=_typing,
        effects=_effects("write"),
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="tma",
        convergent=True,
    )
)
register(
    Primitive(
        name="tma_reduce_add",
        params=_PARAMS,
        doc="One thread starts TMA reductions that add `view` to the tile at `place`, element by"
        " element and in no fixed order; elements outside the tensor are dropped. `axes` as for"
        " tma_load. Part of the group that tma_store_commit closes.",
        source="PTX ISA 9.0, cp.reduce.async.bulk.tensor",
        typing=_typing,
        effects=_effects("atomic"),
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="tma_reduce",
        convergent=True,
    )
)


# -- groups ----------------------------------------------------------------------------------------


def _wait_typing(t: TypingContext, call: Call) -> None:
    check.static_int(t, call.args[0], "the number of pending groups", 0, 63)
    check.one_of(t, call.args[1], "read", (True, False))


def _commit_meaning(unit: Unit, call: Call) -> None:
    unit.commit("bulk_group")


def _wait_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    pending: int = static(call, "pending")
    reads: bool = static(call, "read")
    yield Wait(
        lambda: unit.drained("bulk_group", pending, reads_only=reads),
        f"TMA store groups, {pending} pending",
        drains=True,
    )
    yield from mean_unit_sync(unit)


def _emit_commit(cg: Emitter, call: Call) -> None:
    code = """\
__device__ __forceinline__ void tma_store_commit() {
  asm volatile("cp.async.bulk.commit_group;" ::: "memory");
}"""
    name = cg.helper("tma_store_commit", code)
    with cg.elected():
        cg.line(f"{name}();")


def _emit_wait(cg: Emitter, call: Call) -> None:
    read = ".read" if static(call, "read") else ""
    name = "tma_store_wait_read" if read else "tma_store_wait"
    code = f"""\
template <int pending>
__device__ __forceinline__ void {name}() {{
  asm volatile("cp.async.bulk.wait_group{read} %0;" ::"n"(pending) : "memory");
}}"""
    name = cg.helper(name, code)
    with cg.elected():
        cg.line(f"{name}<{static(call, 'pending')}>();")
    # The groups belong to the elected thread; the others learn of their end by meeting it.
    emit_unit_sync(cg)


define(
    "tma_store_commit",
    SyncEffect("commit", "bulk_group"),
    doc="Close the group of the TMA stores and reductions issued since the last commit.",
    source="PTX ISA 9.0, cp.async.bulk.commit_group",
    meaning=_commit_meaning,
    emit=_emit_commit,
    requires="bulk_copy",
)
define(
    "tma_store_wait",
    SyncEffect("drain", "bulk_group"),
    SyncEffect("barrier", "unit"),
    params=(Param("pending", "static"), Param("read", "static", True, keyword_only=True)),
    doc="Wait until at most `pending` of the newest TMA store groups are unfinished; ends with a"
    " unit_sync, so that all threads know. read=True: the shared memory of those groups has been"
    " read and may be written again; read=False: their writes are complete, as publishing by a"
    " flag needs.",
    source="PTX ISA 9.0, cp.async.bulk.wait_group",
    typing=_wait_typing,
    meaning=_wait_meaning,
    emit=_emit_wait,
    requires="bulk_copy",
    issue=2,
)
