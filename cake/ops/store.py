"""``store(destination, value, ...)``: registers into global or shared memory.

Scalars and register arrays are stored by each executing thread; fragments and vectors, which lie
over the threads of the unit, by :mod:`cake.ops.store_tile`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, I32, I64, U32, DType, numpy_dtype
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import ColVector, Fragment, RegArray, RowVector, Scalar, SmemView, Void
from cake.ops import check, store_tile
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    at,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.findings import CONFLICTING_STORE
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    Form,
    active,
    address,
    dtype_of,
    indices,
    memory_of,
    peer_argument,
    peer_rank,
    per_word,
    pitch_of,
    publish_if_releasing,
    space_of,
    store_element,
    store_words,
    typed_mask,
    typed_peer,
    typed_scalar,
    varies,
    vector_bytes,
    word,
)
from cake.ops.tiles import check_multiple, typed_multiple

CACHES = ("wb", "cg", "cs", "wt")
ORDERS = ("relaxed", "release")


def _typing(t: TypingContext, call: Call) -> Typed:
    to = memory_of(t, call.args[0], "the destination")
    _, value, mask, clip, cache, order, peer = call.args
    assert value is not None
    dtype = dtype_of(to)
    check.one_of(t, clip, "clip", (True, False))
    check.one_of(t, cache, "cache", CACHES)
    check.one_of(t, order, "order", (None, *ORDERS))
    mask, peer = typed_mask(t, mask), typed_peer(t, to, peer)
    if isinstance(to, View) and cache is not None:
        t.fail("cache= is for global memory", cache)
    if isinstance(value.type, Fragment | RowVector | ColVector):
        store_tile.typed(t, to, value)
        if peer is not None or order is not None:
            t.fail("peer= and order= go with scalars and register arrays", peer or order)
        return Typed(Void(), (to, value, mask, clip, cache, order, peer))
    if clip is not None:
        t.fail("clip= goes with fragments and vectors; mask a scalar or register array", clip)
    value = _typed_value(t, to, value, dtype)
    if order is not None:
        if not isinstance(value.type, Scalar) or dtype not in (I32, U32, I64):
            t.fail(f"an ordered access moves one i32, u32 or i64, got {value.type}", order)
        if cache is not None:
            t.fail("cache= and order= exclude each other", cache)
    return Typed(Void(), (to, value, mask, clip, cache, order, peer))


def _typed_value(t: TypingContext, to: Expr, value: Expr, dtype: DType) -> Expr:
    """A scalar for an element, or a register array for as many neighbours."""
    shape = to.type.shape if isinstance(to.type, SmemView) else None
    if isinstance(value.type, RegArray):
        count = value.type.length
        if value.type.dtype != dtype:
            helps = (f"cast(..., {dtype}) converts",)
            t.fail(
                f"the destination holds {dtype}, the value {value.type.dtype}", value, helps=helps
            )
        if shape is not None and shape != (count,):
            t.fail(
                f"a register array of {count} goes to a view of {count} elements, got {to.type}",
                to,
                helps=(f"write S[i, j : j + {count}]",),
            )
        per = vector_bytes(dtype, count, pitch_of(t, to)) // dtype.bytes
        typed_multiple(t, indices(to)[-1], max(per, 1), "the last coordinate of a vector store")
        return value
    value = typed_scalar(t, value, dtype, "the value")
    if shape:
        t.fail(f"a scalar goes to one element, got {to.type}", to, helps=("index it: S[i, j]",))
    return value


def _effects(call: Call) -> Effects:
    return (Access("write", 0, "smem" if isinstance(call.args[0], View) else "global"),)


def _meaning(unit: Unit, call: Call) -> None:
    to, value, mask, _, _, _, peer = call.args
    assert to is not None
    assert value is not None
    if isinstance(value.type, Fragment | RowVector | ColVector):
        store_tile.meaning(unit, to, value, mask, clip=static(call, "clip"))
        return
    publish_if_releasing(unit, call)
    dtype = dtype_of(to)
    values = np.asarray(unit.eval(value)).astype(numpy_dtype(dtype))
    array = value.type if isinstance(value.type, RegArray) else None
    per_thread = varies(*indices(to), value, mask)
    if array:
        per = vector_bytes(dtype, array.length, pitch_of(unit, to)) // dtype.bytes
        check_multiple(unit, call, indices(to)[-1], max(per, 1), "the last coordinate")
        along = np.broadcast_to(np.arange(array.length), (unit.threads, array.length))
    else:
        along = np.zeros((unit.threads,) if per_thread or values.ndim else (), np.int64)
    on = active(unit, mask, along.ndim)
    if not varies(*indices(to)):
        along, values, on = _one_writer(unit, along, values, on)
    if isinstance(to, View):
        index = [along] if array else []
        unit.smem_write(to, values, index, mask=on, peer=peer_rank(unit, peer))
    else:
        offsets = [np.zeros_like(along)] * (len(indices(to)) - 1) + [along]
        unit.global_write(to, values, offsets, mask=on)


def _one_writer(unit: Unit, along: Any, values: Any, on: Any) -> tuple[Any, Any, Any]:
    """All active threads name one address: they must agree, and one of them writes."""
    threads = np.nonzero(on.reshape(-1))[0]
    if along.ndim == 0 or not len(threads):
        return along, values, on
    each = np.broadcast_to(values, along.shape)[threads]
    if len({one.tobytes() for one in each}) > 1:
        unit.fail(
            CONFLICTING_STORE,
            f"{len(threads)} threads store different values to one element",
            threads=len(threads),
        )
    return along[threads[0]], each[0], np.True_


def _cost(call: Call, threads: int) -> Cost:
    to, value = call.args[0], call.args[1]
    assert to is not None
    assert value is not None
    if isinstance(value.type, Fragment | RowVector | ColVector):
        return store_tile.cost(to, value, threads)
    dtype = dtype_of(to)
    count = value.type.length if isinstance(value.type, RegArray) else 1
    accesses = max(1, count * dtype.bytes // vector_bytes(dtype, count))
    size = count * dtype.bytes * (threads if varies(*indices(to)) else 1)
    work = Cost(issue=2 * accesses * (threads // 32))
    return work + (Cost(smem=size) if isinstance(to, View) else Cost(gmem_write=size))


def form_of(call: Call) -> Form:
    """The variant of a store."""
    to, peer = call.args[0], call.args[6]
    assert to is not None
    cache = static(call, "cache")
    # Write-back is what a plain st does.
    return Form(space_of(to, peer), None if cache == "wb" else cache, static(call, "order"))


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    value, mask = at(call, "value", "mask")
    assert value is not None
    if mask is None:
        _emit_value(cg, call, value)
        return
    with cg.block(f"if ({cg.scalar(mask)})"):
        _emit_value(cg, call, value)


def _emit_value(cg: Emitter, call: Call, value: Expr) -> None:
    to, peer = call.args[0], call.args[6]
    assert to is not None
    form, dtype = form_of(call), dtype_of(to)
    if isinstance(value.type, Fragment | RowVector | ColVector):
        store_tile.emit(cg, form, to, value, clip=static(call, "clip"))
        return
    rank = peer_argument(cg, peer)
    if isinstance(value.type, RegArray):
        _emit_words(cg, form, to, value, rank)
        return
    name = store_element(cg, form, dtype)
    text = cg.scalar(value)
    text = f"(unsigned char){text}" if dtype == BOOL else text
    cg.line(f"{name}({address(cg, to)}{rank}, {text});")


def _emit_words(cg: Emitter, form: Form, to: Expr, value: Expr, rank: str) -> None:
    """The accesses of a vector store, widest first; single elements are taken out of words."""
    assert isinstance(value.type, RegArray)
    dtype, count = value.type.dtype, value.type.length
    size = vector_bytes(dtype, count, pitch_of(cg, to))
    if not isinstance(to, View):
        cg.require_alignment(to.tensor, size)  # type: ignore[attr-defined]
    array = cg.array(value)
    w, per = word(dtype), per_word(dtype)
    if dtype != BOOL and size >= w.bytes:
        name = store_words(cg, form, dtype, size // w.bytes)
        for first in range(0, count, size // dtype.bytes):
            source = f"{array} + {first // per}" if first else array
            cg.line(f"{name}({address(cg, to, str(first))}{rank}, {source});")
        return
    name = store_element(cg, form, dtype)
    for i in range(count):
        part = cg.element(value, str(i), value.type)
        part = f"(unsigned char){part}" if dtype == BOOL else part
        cg.line(f"{name}({address(cg, to, str(i))}{rank}, {part});")


register(
    Primitive(
        name="store",
        params=(
            Param("destination", "place"),
            Param("value"),
            Param("mask", default=None, keyword_only=True),
            Param("clip", "static", True, keyword_only=True),
            Param("cache", "static", "wb", keyword_only=True),
            Param("order", "static", None, keyword_only=True),
            Param("peer", default=None, keyword_only=True),
        ),
        doc="Store a value of the destination's element type. A scalar goes to one element, a"
        " register array to neighbours along the last axis in accesses of up to 16 bytes (the last"
        " coordinate is a multiple of that many elements; the launch is guarded for the tensor's"
        " alignment). An acc fragment goes to the tile at a place, rows and columns along the last"
        " two axes, or to a shared view of its shape; a row or column vector along the last axis;"
        " elements outside the tensor are dropped unless clip=False. mask: only threads for which"
        " it is true store. cache: wb, cg, cs, wt. order: relaxed or release, at GPU scope, for"
        " flags. peer: rank of the CTA of the cluster whose shared memory is written.",
        source="PTX ISA 9.0, st; mapa",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
