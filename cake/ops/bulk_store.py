"""``bulk_store`` and ``bulk_reduce_add``: one row of shared memory into global memory, in bulk."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

from cake.ir.dtypes import BF16, F16, F32, I32, I64, U32, DType
from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops.atomic_table import wrapped_add
from cake.ops.base import Access, Cost, Effects, Param, Primitive, TypingContext, register
from cake.ops.bulk_rows import check_row, typed_row
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.tiles import freeze, place_of, tile_of, tile_offsets, view_bytes

REDUCED: dict[DType, str] = {
    F32: "f32",
    F16: "noftz.f16",
    BF16: "noftz.bf16",
    I32: "s32",
    U32: "u32",
    I64: "u64",
}
"""Element types that bulk reductions add, as PTX spells them (cp.reduce.async.bulk)."""


def _typing(t: TypingContext, call: Call) -> Type:
    view, tile, _ = typed_row(t, call.args[1], call.args[0])
    if call.op == "bulk_reduce_add" and tile.dtype not in REDUCED:
        names = ", ".join(d.name for d in REDUCED)
        t.fail(f"bulk reductions add {names}, not {tile.dtype}", view)
    return Void()


def _effects(action: Literal["write", "atomic"], call: Call) -> Effects:
    return (
        Access("read", 1, "smem", "async", "bulk_group"),
        Access(action, 0, "global", "async", "bulk_group"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    place, (view, tile) = place_of(call.args[0]), tile_of(call.args[1])
    check_row(unit, call, view, place)
    to, source = freeze(unit, place), freeze(unit, view)
    offsets = tile_offsets(call, tile.shape, len(place.index))

    def land(values: Any) -> None:
        if call.op == "bulk_store":
            unit.global_write(to, values, offsets, proxy="async")
        else:
            unit.global_update(to, values, offsets, wrapped_add)

    unit.issue("bulk_group", lambda: unit.smem_read(source, proxy="async"), land)


def _cost(call: Call, threads: int) -> Cost:
    size = view_bytes(tile_of(call.args[1])[0])
    return Cost(issue=3 * (threads // 32), smem=size, gmem_write=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    place, (view, tile) = place_of(call.args[0]), tile_of(call.args[1])
    cg.require_alignment(place.tensor, 16)
    head, name = "cp.async.bulk.global.shared::cta.bulk_group", "bulk_store"
    if call.op == "bulk_reduce_add":
        kind = REDUCED[tile.dtype]
        head = f"cp.reduce.async.bulk.global.shared::cta.bulk_group.add.{kind}"
        name = f"bulk_reduce_add_{tile.dtype}"
    code = f"""\
__device__ __forceinline__ void {name}(void* to, unsigned from, unsigned bytes) {{
  asm volatile(
      "{head} [%0], [%1], %2;"
      ::"l"(to), "r"(from), "r"(bytes) : "memory");
}}"""
    function = cg.helper(name, code)
    to, source = cg.global_pointer(place), cg.smem_address(view)
    with cg.elected():
        cg.line(f"{function}({to}, {source}, {view_bytes(view)});")


def _define(
    name: str, action: Literal["write", "atomic"], requires: str, instruction: str, doc: str
) -> None:
    effects: Callable[[Call], Effects] = partial(_effects, action)
    register(
        Primitive(
            name=name,
            params=(Param("place", "place"), Param("view", "place")),
            doc=f"{doc} Nothing is clipped: all elements must lie inside the tensor. Size and both"
            " addresses are multiples of 16 bytes. Written through the async proxy: fence_async and"
            " unit_sync come before. Part of the group that tma_store_commit closes.",
            source=f"PTX ISA 9.0, {instruction}",
            typing=_typing,
            effects=effects,
            meaning=_meaning,
            cost=_cost,
            emit={"": _emit},
            requires=requires,
            convergent=True,
        )
    )


_define(
    "bulk_store",
    "write",
    "bulk_copy",
    "cp.async.bulk",
    "One thread starts a bulk copy of the one-dimensional `view` to the elements at `place`, along"
    " its last axis.",
)
_define(
    "bulk_reduce_add",
    "atomic",
    "bulk_reduce",
    "cp.reduce.async.bulk",
    "One thread starts a bulk reduction that adds the one-dimensional `view` (f32, f16, bf16, i32,"
    " u32, i64) to the elements at `place`, along its last axis, one by one and in no fixed order.",
)
