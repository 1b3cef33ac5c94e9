"""``prefetch(place)`` and ``tma_prefetch(view, place)``: hints that change nothing but the time."""

from __future__ import annotations

from cake.ir.nodes import Call, TensorRef
from cake.ir.types import Type, Void
from cake.ops import check
from cake.ops.base import Cost, Param, Primitive, TypingContext, no_effects, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.tiles import place_of, tile_of
from cake.ops.tma_boxes import AXES, tma_copies, typed_boxes


def _typing(t: TypingContext, call: Call) -> Type:
    place = call.args[0]
    if not isinstance(place, TensorRef):
        got = "nothing" if place is None else check.describe(place)
        t.fail(f"the place must be a coordinate of a global tensor, got {got}", place)
    return Void()


def _map_typing(t: TypingContext, call: Call) -> Type:
    typed_boxes(t, call, call.args[0], call.args[1])
    return Void()


def _meaning(unit: Unit, call: Call) -> None:
    """Nothing: a prefetch has no result."""


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=threads // 32)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    code = """\
__device__ __forceinline__ void prefetch_l2(const void* from) {
  asm volatile("prefetch.global.L2 [%0];" ::"l"(from) : "memory");
}"""
    cg.line(f"{cg.helper('prefetch_l2', code)}({cg.global_pointer(place_of(call.args[0]))});")


def _emit_map(cg: Emitter, call: Call, dest: str | None) -> None:
    view, place = tile_of(call.args[0])[0], place_of(call.args[1])
    code = """\
__device__ __forceinline__ void tma_prefetch(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}"""
    name = cg.helper("tma_prefetch", code)
    tensor_map, _, _ = next(iter(tma_copies(cg, call, view, place)))
    with cg.elected():
        cg.line(f"{name}({tensor_map});")


register(
    Primitive(
        name="prefetch",
        params=(Param("place", "place"),),
        doc="Each executing thread fetches the cache line at `place` into L2.",
        source="PTX ISA 9.0, prefetch",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
register(
    Primitive(
        name="tma_prefetch",
        params=(Param("view", "place"), Param("place", "place"), AXES),
        doc="Fetch the tensor map that a tma_load or tma_store of `view` at `place`, with these"
        " `axes`, would use.",
        source="PTX ISA 9.0, prefetch.tensormap",
        typing=_map_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit_map},
        requires="tma",
        convergent=True,
    )
)
