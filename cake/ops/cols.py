"""``cols``: a column vector from shared memory."""

from __future__ import annotations

from typing import Any

from cake.ir.fragments import col_coordinates
from cake.ir.nodes import Call, View
from cake.ir.types import WARP, ColVector
from cake.ops import tiles, vector_load
from cake.ops.base import Param, Primitive, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> ColVector:
    e, view = vector_load.typed_view(t, call, 8)
    vector_load.uniform_offsets(t, e)
    vector_load.typed_pairs(t, e, "the source")
    return ColVector(view.dtype, view.shape[0])


def _meaning(unit: Unit, call: Call) -> Any:
    view = call.args[0]
    assert isinstance(view, View)
    assert isinstance(call.type, ColVector)
    tiles.check_multiple(unit, call, view.offsets[-1], 2, "the offset of the source")
    index = col_coordinates(call.type, unit.threads // WARP)
    return unit.smem_read(view, [index])


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    view, dtype = vector_load.source(call)
    assert isinstance(call.type, ColVector)
    load = vector_load.load_helper(cg, dtype, 2)
    name = dest or cg.fresh("cols")
    if dest is None:
        cg.declare(call.type, name)
    with cg.unrolled(call.type.registers // 2):
        address = cg.smem_address(view, ["i * 8 + lane % 4 * 2"])
        cg.line(f"{load}({name}[2 * i], {name}[2 * i + 1], {address});")
    return name


register(
    Primitive(
        name="cols",
        params=(Param("source", "place"),),
        doc="""A column vector loaded from ``source``, a 1-D shared view of N elements.

N is a multiple of 8, the view's offset a multiple of 2: lanes load two neighbours at a time.
Elements are f32, i32 or u32.""",
        source="PTX ISA, ld.shared.v2",
        typing=_typing,
        effects=vector_load.effects,
        meaning=_meaning,
        cost=vector_load.cost(2, 4),
        emit={"": _emit},
    )
)
