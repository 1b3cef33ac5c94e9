"""``bulk_load(view, place)``: a one-dimensional bulk copy from global into shared memory."""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops import completion
from cake.ops.base import Access, Cost, Effects, Param, Primitive, Typed, TypingContext, register
from cake.ops.bulk_rows import check_row, typed_row
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.tiles import freeze, place_of, tile_of, tile_offsets, view_bytes


def _typing(t: TypingContext, call: Call) -> Type | Typed:
    view, _, _ = typed_row(t, call.args[0], call.args[1])
    return Typed(Void(), (*call.args[:3], completion.typed(t, call, view)))


def _effects(call: Call) -> Effects:
    return (
        Access("write", 0, "smem", "async", "mbarrier"),
        Access("read", 1, "global", "async", "mbarrier"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    (view, tile), place = tile_of(call.args[0]), place_of(call.args[1])
    check_row(unit, call, view, place)
    to, source = freeze(unit, view), freeze(unit, place)
    offsets = tile_offsets(call, tile.shape, len(place.index))
    unit.issue(
        "mbarrier",
        lambda: unit.global_read(source, offsets, proxy="async"),
        lambda values: unit.smem_write(to, values, proxy="async"),
        barrier=completion.mbarrier(unit, call, view),
        tx=view_bytes(view),
    )


def _cost(call: Call, threads: int) -> Cost:
    size = view_bytes(tile_of(call.args[0])[0])
    return Cost(issue=3 * (threads // 32), smem=size, gmem_read=size)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    view, place = tile_of(call.args[0])[0], place_of(call.args[1])
    cg.require_alignment(place.tensor, 16)
    code = """\
__device__ __forceinline__ void bulk_load(unsigned to, const void* from, unsigned bytes,
                                          unsigned bar) {
  asm volatile(
      "cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
      ::"r"(to), "l"(from), "r"(bytes), "r"(bar) : "memory");
}"""
    name = cg.helper("bulk_load", code)
    bar = completion.address(cg, call, view)
    to, source = cg.smem_address(view), cg.global_pointer(place)
    with cg.elected():
        cg.line(f"{name}({to}, {source}, {view_bytes(view)}, {bar});")


register(
    Primitive(
        name="bulk_load",
        params=(Param("view", "place"), Param("place", "place"), *completion.PARAMS),
        doc="One thread starts a bulk copy of the elements at `place`, along its last axis, into"
        " the one-dimensional `view`. Nothing is clipped: all elements must lie inside the tensor."
        " Size and both addresses are multiples of 16 bytes. Completes as tma_load does: on the"
        " ring's full barrier, or on `slot` of the mbarrier `barrier`.",
        source="PTX ISA 9.0, cp.async.bulk",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="bulk_copy",
        convergent=True,
    )
)
