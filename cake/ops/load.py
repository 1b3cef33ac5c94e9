"""``load(source, ...)``: elements of global or shared memory into a thread's registers."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, I32, I64, U32, numpy_dtype
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import RegArray, Scalar, SmemView
from cake.ops import check
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
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    Form,
    active,
    address,
    dtype_of,
    element,
    indices,
    load_element,
    load_words,
    memory_of,
    peer_argument,
    peer_rank,
    per_word,
    pitch_of,
    space_of,
    typed_mask,
    typed_peer,
    typed_scalar,
    varies,
    vector_bytes,
    word,
)
from cake.ops.tiles import check_multiple, typed_multiple

CACHES = ("ca", "cg", "cs", "nc")
ORDERS = ("relaxed", "acquire")
MAX_WIDTH = 256


def _typing(t: TypingContext, call: Call) -> Typed:
    source = memory_of(t, call.args[0], "the source")
    _, width, mask, fill, cache, order, peer = call.args
    dtype = dtype_of(source)
    check.one_of(t, cache, "cache", CACHES)
    check.one_of(t, order, "order", (None, *ORDERS))
    mask, peer = typed_mask(t, mask), typed_peer(t, source, peer)
    if isinstance(source, View) and cache is not None:
        t.fail("cache= is for global memory", cache)
    if fill is not None:
        if mask is None:
            t.fail("fill= is what masked-off threads get; give mask= too", fill)
        fill = typed_scalar(t, fill, dtype, "fill")
    count = _count(t, source, width)
    if order is not None:
        _typed_order(t, call, count)
    if count is None:
        varying = varies(*indices(source), mask, fill)
        return Typed(Scalar(dtype, varying), (source, width, mask, fill, cache, order, peer))
    per = vector_bytes(dtype, count, pitch_of(t, source)) // dtype.bytes
    typed_multiple(t, indices(source)[-1], max(per, 1), "the last coordinate of a vector load")
    return Typed(RegArray(dtype, count), (source, width, mask, fill, cache, order, peer))


def _count(t: TypingContext, source: Expr, width: Expr | None) -> int | None:
    """Elements a thread loads into a register array; None for a scalar."""
    if isinstance(source.type, SmemView):
        shape = source.type.shape
        if len(shape) > 1:
            t.fail(
                f"a thread loads one element or one row of elements, got {source.type}",
                source,
                helps=("index it: load(S[i, j]) or load(S[i, j : j + 4])", "or use ldmatrix"),
            )
        if width is not None:
            t.fail("width= is for tensors; a view says its width itself: S[i, j : j + 4]", width)
        return shape[0] if shape else None
    return None if width is None else check.static_int(t, width, "width", 1, MAX_WIDTH)


def _typed_order(t: TypingContext, call: Call, count: int | None) -> None:
    cache, order = at(call, "cache", "order")
    dtype = dtype_of(memory_of(t, call.args[0], "the source"))
    if count is not None or dtype not in (I32, U32, I64):
        t.fail(f"an ordered access moves one i32, u32 or i64, got {dtype}", order)
    if cache is not None:
        t.fail("cache= and order= exclude each other", cache)


def _effects(call: Call) -> Effects:
    return (Access("read", 0, "smem" if isinstance(call.args[0], View) else "global"),)


def _meaning(unit: Unit, call: Call) -> Any:
    source, _, mask, fill, _, _, peer = call.args
    assert source is not None
    dtype = dtype_of(source)
    array = call.type if isinstance(call.type, RegArray) else None
    per_thread = varies(*indices(source), mask, fill)
    on: Any = active(unit, mask, 2 if array else int(per_thread))
    if array:
        per = vector_bytes(dtype, array.length, pitch_of(unit, source)) // dtype.bytes
        check_multiple(unit, call, indices(source)[-1], max(per, 1), "the last coordinate")
        along = np.broadcast_to(np.arange(array.length), (unit.threads, array.length))
    else:
        along = np.zeros((unit.threads,) if per_thread else (), np.int64)
    values = _read(unit, source, along, on, peer, flat=array is None)
    other = 0 if fill is None else unit.eval(fill)
    if array and np.ndim(other) == 1:
        other = np.asarray(other)[:, None]
    return np.where(on, values, other).astype(numpy_dtype(dtype))


def _read(unit: Unit, source: Expr, along: Any, on: Any, peer: Expr | None, *, flat: bool) -> Any:
    if isinstance(source, View):
        index = [] if flat else [along]
        return unit.smem_read(source, index, mask=on, peer=peer_rank(unit, peer))
    offsets = [np.zeros_like(along)] * (len(indices(source)) - 1) + [along]
    return unit.global_read(source, offsets, mask=on)


def _cost(call: Call, threads: int) -> Cost:
    source = call.args[0]
    assert source is not None
    dtype = dtype_of(source)
    count = call.type.length if isinstance(call.type, RegArray) else 1
    accesses = max(1, count * dtype.bytes // vector_bytes(dtype, count))
    lanes = threads if varies(*indices(source)) else 1
    size = count * dtype.bytes * lanes
    work = Cost(issue=2 * accesses * (threads // 32))
    return work + (Cost(smem=size) if isinstance(source, View) else Cost(gmem_read=size))


def _form(call: Call) -> Form:
    source, peer = call.args[0], call.args[6]
    assert source is not None
    cache = static(call, "cache")
    # Caching at all levels is what a plain ld does.
    return Form(space_of(source, peer), None if cache == "ca" else cache, static(call, "order"))


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    source, _, mask, fill, _, _, peer = call.args
    assert source is not None
    if isinstance(call.type, RegArray):
        return _emit_array(cg, call, source, dest)
    dtype = dtype_of(source)
    name = load_element(cg, _form(call), dtype)
    value = f"{name}({address(cg, source)}{peer_argument(cg, peer)})"
    if dtype == BOOL:
        value = f"({value} != 0)"
    if mask is None:
        return value
    other = "0" if fill is None else cg.scalar(fill)
    kind = "bool" if dtype == BOOL else element(dtype).c
    return f"({cg.scalar(mask)} ? {value} : ({kind}){other})"


def _emit_array(cg: Emitter, call: Call, source: Expr, dest: str | None) -> str:
    mask, fill = call.args[2], call.args[3]
    assert isinstance(call.type, RegArray)
    dtype, count = call.type.dtype, call.type.length
    name = dest or cg.fresh("loaded")
    if dest is None:
        cg.declare(call.type, name)
    if mask is None:
        _emit_words(cg, call, source, name)
        return name
    other = "0" if fill is None else cg.scalar(fill)
    per = per_word(dtype)
    if per > 1 and fill is not None:
        other = f"{other} * {'0x10001u' if per == 2 else '0x1010101u'}"
    with cg.block(f"if ({cg.scalar(mask)})"):
        _emit_words(cg, call, source, name)
    with cg.block("else"), cg.unrolled(-(-count // per)):
        cg.line(f"{name}[i] = {other};")
    return name


def _emit_words(cg: Emitter, call: Call, source: Expr, name: str) -> None:
    """The accesses of a vector load, widest first; words of single elements are put together."""
    assert isinstance(call.type, RegArray)
    dtype, count = call.type.dtype, call.type.length
    form, rank = _form(call), peer_argument(cg, call.args[6])
    size = vector_bytes(dtype, count, pitch_of(cg, source))
    if not isinstance(source, View):
        cg.require_alignment(source.tensor, size)  # type: ignore[attr-defined]
    w, per = word(dtype), per_word(dtype)
    if dtype != BOOL and size >= w.bytes:
        words = size // w.bytes
        load = load_words(cg, form, dtype, words)
        for first in range(0, count, size // dtype.bytes):
            to = f"{name} + {first // per}" if first else name
            cg.line(f"{load}({to}, {address(cg, source, str(first))}{rank});")
        return
    load = load_element(cg, form, dtype)
    for first in range(0, count, per):
        parts = (
            f"(unsigned){load}({address(cg, source, str(first + k))}{rank}) << {k * dtype.bits}"
            for k in range(min(per, count - first))
        )
        cg.line(f"{name}[{first // per}] = {' | '.join(parts)};")


register(
    Primitive(
        name="load",
        params=(
            Param("source", "place"),
            Param("width", "static", None),
            Param("mask", default=None, keyword_only=True),
            Param("fill", default=None, keyword_only=True),
            Param("cache", "static", "ca", keyword_only=True),
            Param("order", "static", None, keyword_only=True),
            Param("peer", default=None, keyword_only=True),
        ),
        doc="Each executing thread loads the element `source`, or `width` neighbours from it on"
        " along the last axis of a tensor into a register array; from shared memory S[i, j] is an"
        " element, S[i, j : j + n] an array. Arrays move in accesses of up to 16 bytes, so the last"
        " coordinate is a multiple of that many elements, and the launch is guarded for the"
        " tensor's alignment. Threads whose mask is false touch nothing and get `fill`. cache: ca,"
        " cg, cs, nc (memory that nobody writes during the kernel). order: relaxed or acquire, at"
        " GPU scope, for flags. peer: rank of the CTA of the cluster whose shared memory is read.",
        source="PTX ISA 9.0, ld, ld.global.nc; mapa",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
