"""Tensor memory: ``tmem_alloc`` and ``tmem_free``, and the address of a tile in it (sm_100a).

A tile has 128 lanes; its elements are 32 bits wide, one a column. An address holds the lane in its
upper half and the column in its lower half. The hardware writes the address of an allocation to
shared memory; every use of a tile loads it from there. (PTX ISA, "Tensor Memory".)
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cake.ir.dtypes import F32, I32, U32
from cake.ir.nodes import Call, Expr, ResourceRef, View, walk_calls
from cake.ir.program import Program, Tmem
from cake.ir.types import SmemView, TmemView, Type, Void
from cake.ops import check, pairs
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    SyncEffect,
    TypingContext,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.memory_access import Form, load_element

LANES = 128
_SOURCE = "PTX ISA 9.0, tcgen05.alloc, tcgen05.dealloc, tcgen05.relinquish_alloc_permit"


def typed_tile(t: TypingContext, e: Expr | None, what: str) -> tuple[View, TmemView]:
    """A tile of tensor memory."""
    if not isinstance(e, View) or not isinstance(e.type, TmemView):
        got = "nothing" if e is None else check.describe(e)
        t.fail(f"{what} must be a tile of tensor memory, got {got}", e, helps=("write T[stage]",))
    return e, e.type


def columns(tiles: Tmem) -> int:
    """Columns that all stages take."""
    return tiles.shape[1] * (tiles.stages or 1)


def tile_address(cg: Emitter, view: View) -> str:
    """C expression of the address of a tile."""
    tiles = cg.resource(view.base)
    assert isinstance(tiles, Tmem)
    load = load_element(cg, Form("shared"), U32)
    base = f"{load}({cg.smem_address(_word(cg.program, view.base))})"
    if view.stage is None:
        return base
    return f"({base} + ({cg.scalar(view.stage)}) * {tiles.shape[1]})"


def _word(program: Program, tiles: str) -> Expr:
    """Where the allocation of ``tiles`` put its address (ValueError if nothing allocates it)."""
    for role in program.roles:
        for call in walk_calls(role.body):
            if call.op == "tmem_alloc" and getattr(call.args[0], "name", None) == tiles:
                assert call.args[1] is not None
                return call.args[1]
    raise ValueError(f"tensor memory {tiles} is used but no tmem_alloc({tiles}, word) allocates it")


def tile_column(unit: Unit, view: View) -> int:
    """The column of tensor memory at which a tile begins, as the allocation wrote it."""
    tiles = unit.resource(view.base)
    assert isinstance(tiles, Tmem)
    base = int(unit.smem_read(_word(unit.program, view.base), []))
    return base + (0 if view.stage is None else int(unit.eval(view.stage)) * tiles.shape[1])


def words(program: Program) -> frozenset[str]:
    """Buffers that hold the addresses of allocations: every use of the tiles reads them."""
    places = (
        call.args[1]
        for role in program.roles
        for call in walk_calls(role.body)
        if call.op == "tmem_alloc"
    )
    return frozenset(place.base for place in places if isinstance(place, View))


def _declared(stage: TypingContext | Emitter | Unit, call: Call) -> Tmem:
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    tiles = stage.resource(ref.name)
    assert isinstance(tiles, Tmem)
    return tiles


def _typed_tiles(t: TypingContext, call: Call) -> None:
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    tiles = t.resource(ref.name)
    if not isinstance(tiles, Tmem):
        t.fail(f"tiles must be declared with tmem(...), got {ref.name}", ref)
    limits = t.target.tmem
    assert limits is not None
    if tiles.shape[0] != LANES or tiles.dtype not in (F32, I32):
        t.fail(
            f"{tiles.name} must have {LANES} lanes of f32 or i32, got {tiles.shape[0]} of"
            f" {tiles.dtype}",
            ref,
        )
    if not limits.admits(columns(tiles)):
        t.fail(
            f"{tiles.name} takes {columns(tiles)} columns; an allocation is a power of two in"
            f" [{limits.alloc_min}, {limits.columns}]",
            ref,
            facts={"columns": columns(tiles)},
        )


def _alloc_typing(t: TypingContext, call: Call) -> Type:
    _typed_tiles(t, call)
    word = call.args[1]
    if word is None or word.type != SmemView(U32, (), getattr(word.type, "swizzle", 0)):
        got = "nothing" if word is None else check.describe(word)
        t.fail(f"word must be one u32 of shared memory, got {got}", word)
    return Void()


def _free_typing(t: TypingContext, call: Call) -> Type:
    _typed_tiles(t, call)
    return Void()


def _alloc_effects(call: Call) -> Effects:
    return (SyncEffect("wait", "tmem"), Access("write", 1, "smem"))


def _free_effects(call: Call) -> Effects:
    return (SyncEffect("arrive", "tmem"),)


def _alloc_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    tiles, word = _declared(unit, call), call.args[1]
    assert word is not None
    memory, count = unit.tensor_memory(), columns(tiles)
    yield Wait(
        lambda: memory.free_block(count) is not None, f"{count} free columns of tensor memory"
    )
    unit.smem_write(word, np.uint32(memory.allocate(count)), [])


def _free_meaning(unit: Unit, call: Call) -> None:
    tiles = _declared(unit, call)
    column = int(unit.smem_read(_word(unit.program, tiles.name), []))
    unit.tensor_memory().free(column, columns(tiles))


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=2)


def _emit_alloc(cg: Emitter, call: Call, dest: str | None) -> None:
    tiles, word = _declared(cg, call), call.args[1]
    assert word is not None
    group = f"cta_group::{pairs.group(cg.program)}"
    code = f"""\
__device__ __forceinline__ void tmem_alloc(unsigned to, unsigned columns) {{
  asm volatile("tcgen05.alloc.{group}.sync.aligned.shared::cta.b32 [%0], %1;"
               ::"r"(to), "r"(columns) : "memory");
}}"""
    cg.line(f"{cg.helper('tmem_alloc', code)}({cg.smem_address(word)}, {columns(tiles)});")
    if cg.program.find(Tmem)[-1] is tiles:
        code = f"""\
__device__ __forceinline__ void tmem_relinquish() {{
  asm volatile("tcgen05.relinquish_alloc_permit.{group}.sync.aligned;" ::: "memory");
}}"""
        cg.line(f"{cg.helper('tmem_relinquish', code)}();")


def _emit_free(cg: Emitter, call: Call, dest: str | None) -> None:
    tiles = _declared(cg, call)
    code = f"""\
__device__ __forceinline__ void tmem_free(unsigned at, unsigned columns) {{
  asm volatile("tcgen05.dealloc.cta_group::{pairs.group(cg.program)}.sync.aligned.b32 %0, %1;"
               ::"r"(at), "r"(columns) : "memory");
}}"""
    load = load_element(cg, Form("shared"), U32)
    at = f"{load}({cg.smem_address(_word(cg.program, tiles.name))})"
    cg.line(f"{cg.helper('tmem_free', code)}({at}, {columns(tiles)});")


_TILES = Param("tiles", "resource")

register(
    Primitive(
        name="tmem_alloc",
        params=(_TILES, Param("word", "place")),
        doc="One warp allocates all stages of `tiles` and has their address written to the u32"
        " `word` of shared memory, which stays as it is as long as the tiles are in use. A CTA"
        " barrier follows before anyone else uses them; in a pair a warp of each CTA allocates, and"
        " a cluster barrier follows. The allocation of the last declared tiles gives up the right"
        " to allocate, so allocate in the order of declaration.",
        source=_SOURCE,
        typing=_alloc_typing,
        effects=_alloc_effects,
        meaning=_alloc_meaning,
        cost=_cost,
        emit={"sm_10": _emit_alloc},
        requires="tmem",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
register(
    Primitive(
        name="tmem_free",
        params=(_TILES,),
        doc="The warp that allocated `tiles` frees them, once every use by any warp is complete and"
        " ordered before by a barrier. In a pair that is a cluster barrier, and a warp of each CTA"
        " frees. Nothing may be allocated when the CTA ends.",
        source=_SOURCE,
        typing=_free_typing,
        effects=_free_effects,
        meaning=_free_meaning,
        cost=_cost,
        emit={"sm_10": _emit_free},
        requires="tmem",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
