"""``stmatrix(view, fragment)``: a 16-bit fragment into a shared tile."""

from __future__ import annotations

from cake.ir.dtypes import BF16, F16, U16
from cake.ir.fragments import coordinates
from cake.ir.nodes import Call, View
from cake.ir.types import WARP, Fragment, SmemView, Void
from cake.ops import check
from cake.ops.base import Access, Cost, Effects, Param, Primitive, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.matrix_access import (
    acc_addresses,
    check_view,
    matrix_blocks,
    typed_view,
)
from cake.ops.tiles import logical_shape


def _typing(t: TypingContext, call: Call) -> Void:
    view, tile = typed_view(t, call.args[0], (BF16, F16, U16))
    value, fragment = check.fragment(t, call.args[1], "the value")
    if fragment.layout != "acc":
        t.fail(f"only acc fragments are stored by stmatrix, got {fragment}", value)
    if fragment.dtype != tile.dtype:
        t.fail(
            f"the view holds {tile.dtype}, the fragment {fragment.dtype}",
            value,
            helps=(f"cast(..., {tile.dtype}) converts",),
        )
    if logical_shape(tile) != fragment.shape:
        want = "x".join(map(str, fragment.shape))
        t.fail(f"the view must have the shape {want} of the fragment, got {tile}", view)
    return Void()


def _effects(call: Call) -> Effects:
    return (Access("write", 0, "smem"),)


def _meaning(unit: Unit, call: Call) -> None:
    view, value = call.args
    assert isinstance(view, View)
    assert value is not None
    assert isinstance(value.type, Fragment)
    check_view(unit, call, view)
    unit.smem_write(view, unit.eval(value), list(coordinates(value.type)))


def _cost(call: Call, threads: int) -> Cost:
    value = call.args[1]
    assert value is not None
    assert isinstance(value.type, Fragment)
    size = value.type.registers * threads * 2
    return Cost(issue=2 * max(1, value.type.registers // 8) * (threads // WARP), smem=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    view, value = call.args
    assert isinstance(view, View)
    assert isinstance(view.type, SmemView)
    assert value is not None
    t = value.type
    assert isinstance(t, Fragment)
    array, trans = cg.array(value), view.type.transposed
    steps = t.shape[1] // 8
    pairs, single = matrix_blocks(t.shape[1])
    with cg.unrolled(t.shape[0] // (16 * t.warps)):
        if pairs:
            store = _helper(cg, 4, trans=trans)
            with cg.unrolled(pairs, "j"):
                address = acc_addresses(cg, view, t, "j * 16", 4)
                cg.line(f"{store}({address}, {array} + (i * {steps} + j * 2) * 2);")
        if single:
            store = _helper(cg, 2, trans=trans)
            address = acc_addresses(cg, view, t, str(pairs * 16), 2)
            cg.line(f"{store}({address}, {array} + (i * {steps} + {pairs * 2}) * 2);")


def _helper(cg: Emitter, matrices: int, *, trans: bool) -> str:
    name = f"stmatrix_x{matrices}{'_trans' if trans else ''}"
    inputs = ", ".join(f'"r"(from[{i}])' for i in range(matrices))
    names = ", ".join(f"%{1 + i}" for i in range(matrices))
    code = f"""\
__device__ __forceinline__ void {name}(unsigned to, const unsigned* from) {{
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x{matrices}{".trans" if trans else ""}.shared.b16 "
      "[%0], {{{names}}};"
      ::"r"(to), {inputs} : "memory");
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="stmatrix",
        params=(Param("view", "place"), Param("value")),
        doc="Store `value`, an acc fragment of 16-bit elements, to a shared `view` of its shape. A"
        " transposed view is stored with .trans. TMA and wgmma see the tile after fence_async and a"
        " barrier.",
        source="PTX ISA 9.0, stmatrix",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="stmatrix",
        convergent=True,
    )
)
