"""``rows``: a row vector from shared memory."""

from __future__ import annotations

from typing import Any

from cake.ir.fragments import row_coordinates
from cake.ir.nodes import Call
from cake.ir.types import WARP, RowVector
from cake.ops import vector_load
from cake.ops.base import Param, Primitive, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> RowVector:
    warps = t.unit_threads // WARP
    e, view = vector_load.typed_view(t, call, 16 * warps)
    vector_load.uniform_offsets(t, e)
    return RowVector(view.dtype, view.shape[0], warps)


def _meaning(unit: Unit, call: Call) -> Any:
    view, _ = vector_load.source(call)
    assert isinstance(call.type, RowVector)
    return unit.smem_read(view, [row_coordinates(call.type)])


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    view, dtype = vector_load.source(call)
    t = call.type
    assert isinstance(t, RowVector)
    load = vector_load.load_helper(cg, dtype, 1)
    name = dest or cg.fresh("rows")
    if dest is None:
        cg.declare(t, name)
    warp = f"warp_in_unit * {t.rows // t.warps} + " if t.warps > 1 else ""
    with cg.unrolled(t.registers):
        address = cg.smem_address(view, [f"{warp}i / 2 * 16 + i % 2 * 8 + lane / 4"])
        cg.line(f"{load}({name}[i], {address});")
    return name


register(
    Primitive(
        name="rows",
        params=(Param("source", "place"),),
        doc="""A row vector loaded from ``source``, a 1-D shared view of N elements (f32, i32, u32).

N is a multiple of 16 for a warp, of 64 for a warpgroup. The four lanes of a quad load one
address.""",
        source="PTX ISA, ld.shared",
        typing=_typing,
        effects=vector_load.effects,
        meaning=_meaning,
        cost=vector_load.cost(1, 8),
        emit={"": _emit},
    )
)
