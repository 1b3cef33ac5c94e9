"""``tcgen05_ld`` and ``tcgen05_wait_ld``: tensor memory into registers (sm_100a)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cake.ir.nodes import Call, VarRef, View
from cake.ir.types import RegArray, Type, Void
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
from cake.ops.findings import TMEM_RACE
from cake.ops.machine import Unit, Wait
from cake.ops.memory_access import word
from cake.ops.tmem import tile_address, tile_column, typed_tile

WIDTHS = (1, 2, 4, 8, 16, 32, 64, 128)
"""Columns that one instruction loads in the 32x32b shape."""


def _typing(t: TypingContext, call: Call) -> Type:
    tile, d = typed_tile(t, call.args[0], "the source")
    width = check.static_int(t, call.args[2], "width", 1, 128)
    if width not in WIDTHS:
        t.fail(f"width must be a power of two up to 128, got {width}", call.args[2])
    column = check.static_int(t, call.args[1], "column", 0, d.shape[1] - 1)
    if column + width > d.shape[1]:
        t.fail(f"columns [{column}, {column + width}) leave the {d.shape[1]} of {tile.base}", tile)
    return RegArray(d.dtype, width)


def _effects(call: Call) -> Effects:
    return (Access("read", 0, "tmem", "generic", "tcgen05"),)


def _meaning(unit: Unit, call: Call) -> Any:
    """The values are those of the issue; a finding later says that they were overtaken."""
    tile, t = call.args[0], call.type
    assert isinstance(tile, View)
    assert isinstance(t, RegArray)
    memory, first = unit.tensor_memory(), tile_column(unit, tile) + static(call, "column")
    block = f"columns [{first}, {first + t.length})"
    facts = {"column": first, "columns": t.length}
    if memory.busy(first, t.length):
        message = f"{block} are loaded while a product into them is in flight"
        unit.fail(TMEM_RACE, message, related=memory.starts(first, t.length), **facts)
    values, products = memory.read(first, t.length, t.dtype), memory.products(first, t.length)

    def fetch() -> None:
        if memory.products(first, t.length) != products:
            message = f"a product into {block} is issued while a load of them is in flight"
            unit.fail(TMEM_RACE, message, related=memory.starts(first, t.length), **facts)

    unit.issue("tcgen05", fetch, lambda nothing: None, delivers=values)
    unit.commit("tcgen05")
    return values


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=2 * (threads // 32))


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    tile, t = call.args[0], call.type
    assert isinstance(tile, View)
    assert isinstance(t, RegArray)
    name = dest or cg.fresh("lanes")
    if dest is None:
        cg.declare(t, name)
    w, n = word(t.dtype), t.length
    outputs = ", ".join(f'"={w.constraint}"(to[{i}])' for i in range(n))
    registers = ", ".join(f"%{i}" for i in range(n))
    helper = f"tcgen05_ld_x{n}_{w.ptx}"
    code = f"""\
__device__ __forceinline__ void {helper}({w.c}* to, unsigned from) {{
  asm volatile(
      "tcgen05.ld.sync.aligned.32x32b.x{n}.b32 "
      "{{{registers}}}, [%{n}];"
      : {outputs} : "r"(from));
}}"""
    # A warp reaches the 32 lanes of its place in the warpgroup; lanes are the address' upper half.
    at = f"{tile_address(cg, tile)} + ((unsigned)warp_in_unit << 21) + {static(call, 'column')}"
    cg.line(f"{cg.helper(helper, code)}({name}, {at});")
    return name


def _wait_typing(t: TypingContext, call: Call) -> Type:
    value = call.args[0]
    if not isinstance(value, VarRef) or not isinstance(value.type, RegArray):
        t.fail("loaded must be the variable that holds a tcgen05_ld", value)
    return Void()


def _wait_effects(call: Call) -> Effects:
    return (SyncEffect("drain", "tcgen05"),)


def _wait_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    yield Wait(lambda: unit.drained("tcgen05", 0), "tensor memory loads", drains=True)


def _emit_wait(cg: Emitter, call: Call, dest: str | None) -> None:
    value = call.args[0]
    assert value is not None
    assert isinstance(value.type, RegArray)
    w, n = word(value.type.dtype), value.type.length
    operands = ", ".join(f'"+{w.constraint}"(loaded[{i}])' for i in range(n))
    name = f"tcgen05_wait_ld_x{n}_{w.ptx}"
    # The registers are operands, so that no use of them moves in front of the wait.
    code = f"""\
__device__ __forceinline__ void {name}({w.c}* loaded) {{
  asm volatile("tcgen05.wait::ld.sync.aligned;" : {operands} :: "memory");
}}"""
    cg.line(f"{cg.helper(name, code)}({cg.array(value)});")


register(
    Primitive(
        name="tcgen05_ld",
        params=(Param("source", "place"), Param("column", "static"), Param("width", "static")),
        doc="Start loading `width` columns from `column` on of `source`, a tile of tensor memory:"
        " thread i of the warpgroup gets lane i. The registers hold their values after"
        " tcgen05_wait_ld.",
        source="PTX ISA 9.0, tcgen05.ld, .32x32b",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"sm_10": _emit},
        requires="tcgen05",
        convergent=True,
        units=frozenset({"warpgroup"}),
    )
)
register(
    Primitive(
        name="tcgen05_wait_ld",
        params=(Param("loaded"),),
        doc="Wait for all tcgen05_ld of this thread; `loaded` is the variable that is used next.",
        source="PTX ISA 9.0, tcgen05.wait::ld",
        typing=_wait_typing,
        effects=_wait_effects,
        meaning=_wait_meaning,
        cost=_cost,
        emit={"sm_10": _emit_wait},
        requires="tcgen05",
        convergent=True,
        units=frozenset({"warpgroup"}),
    )
)
