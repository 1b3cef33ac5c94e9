"""Subscripts: places in tensors, views of buffers, elements of register arrays."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from itertools import pairwise

from cake.diag import Span
from cake.ir.dtypes import I32
from cake.ir.nodes import Const, Element, Expr, Static, TensorRef, View
from cake.ir.program import Smem, TensorParam, Tmem, WorkspaceDecl
from cake.ir.types import RegArray, Scalar, Slot, SmemView, TensorPlace, TmemView
from cake.lang import codes
from cake.lang.calls import call_primitive
from cake.lang.linear import linear
from cake.lang.scope import State, constant, default_dtype, static
from cake.ops.base import lookup


def attribute(state: State, node: ast.Attribute) -> Expr:
    if node.attr == "T":
        e = state.expression(node.value)
        if isinstance(e, View) and isinstance(e.type, SmemView) and len(e.type.shape) >= 2:
            t = e.type
            flipped = SmemView(t.dtype, t.shape, t.swizzle, not t.transposed)
            return View(base=e.base, stage=e.stage, offsets=e.offsets, type=flipped, loc=e.loc)
        state.reject(codes.BAD_SUBSCRIPT, ".T applies to a 2-D shared-memory view", node)
    state.reject(
        codes.NOT_IN_LANGUAGE,
        f"attribute .{node.attr} is not part of the language",
        node,
        helps=("the only attribute of a value is .T",),
    )


def subscript(state: State, node: ast.Subscript) -> Expr:
    loc = state.source.span(node)
    if isinstance(node.value, ast.Name):
        meaning = state.find(node.value.id)
        if isinstance(meaning, TensorParam | WorkspaceDecl):
            return _place(state, meaning, node, loc)
        if isinstance(meaning, Smem | Tmem) and meaning.stages is not None:
            return whole_view(state, meaning, _stage(state, node.slice), loc)
    base = state.expression(node.value)
    if isinstance(base, View):
        return _narrow(state, base, node, loc)
    if isinstance(base, Static) and isinstance(base.value, tuple):
        i = state.static_value(node.slice, "a tuple index")
        if not isinstance(i, int) or not -len(base.value) <= i < len(base.value):
            state.reject(codes.BAD_SUBSCRIPT, f"index {i} is out of range", node)
        return static(base.value[i], loc)
    if isinstance(base.type, RegArray):
        index = _index(state, node.slice, "a register index")
        _register_bound(state, base.type.length, index, node)
        return Element(base=base, index=index, type=Scalar(base.type.dtype, True), loc=loc)
    helps = ("open a fragment with lanes(...)",) if hasattr(base.type, "registers") else ()
    state.reject(codes.BAD_SUBSCRIPT, f"{base.type} cannot be subscripted", node, helps=helps)


def _register_bound(state: State, length: int, index: Expr, node: ast.AST) -> None:
    if isinstance(index, Const) and not 0 <= index.value < length:
        state.reject(
            codes.BAD_SUBSCRIPT,
            f"index {index.value} is outside the {length} registers",
            node,
            facts={"index": index.value, "length": length},
        )


def _index(state: State, node: ast.expr, what: str) -> Expr:
    e = state.expression(node)
    if isinstance(e, Static):
        dtype = default_dtype(e.value)
        if isinstance(e.value, bool) or not isinstance(e.value, int) or dtype is None:
            state.reject(codes.BAD_SUBSCRIPT, f"{what} must be an integer, got {e.value!r}", node)
        return constant(e.value, dtype, e.loc)
    if isinstance(e.type, Scalar) and e.type.dtype.is_int:
        return e
    state.reject(codes.BAD_SUBSCRIPT, f"{what} must be an integer, got {e.type}", node)


def _stage(state: State, node: ast.expr) -> Expr:
    if isinstance(node, ast.Tuple | ast.Slice):
        state.reject(
            codes.BAD_SUBSCRIPT,
            "the first subscript of a staged buffer is its stage alone",
            node,
            helps=("write S[stage][rows, cols]",),
        )
    e = state.expression(node)
    if isinstance(e.type, Slot):
        return e
    return _index(state, node, "a stage")


def _place(
    state: State, tensor: TensorParam | WorkspaceDecl, node: ast.Subscript, loc: Span
) -> TensorRef:
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(items) != len(tensor.shape):
        state.reject(
            codes.BAD_SUBSCRIPT,
            f"{tensor.name} has {len(tensor.shape)} axes, got {len(items)} indices",
            node,
            facts={"tensor": tensor.name, "rank": len(tensor.shape), "indices": len(items)},
        )
    index = tuple(_index(state, i, f"an index of {tensor.name}") for i in items)
    kind = TensorPlace(tensor.dtype, len(tensor.shape))
    return TensorRef(tensor=tensor.name, index=index, type=kind, loc=loc)


def whole_view(state: State, decl: Smem | Tmem, stage: Expr | None, loc: Span) -> View:
    zero = constant(0, I32, loc)
    offsets: tuple[Expr, ...] = (zero,) * len(decl.shape)
    if isinstance(decl, Smem):
        kind: SmemView | TmemView = SmemView(decl.dtype, decl.shape, decl.swizzle)
    else:
        kind = TmemView(decl.dtype, decl.shape)
    return View(base=decl.name, stage=stage, offsets=offsets, type=kind, loc=loc)


def _narrow(state: State, view: View, node: ast.Subscript, loc: Span) -> View:
    t = view.type
    if not isinstance(t, SmemView) or t.transposed:
        state.reject(codes.BAD_SUBSCRIPT, "narrow a shared-memory view before .T", node)
    decl = state.resources[view.base]
    assert isinstance(decl, Smem)
    if len(t.shape) != len(decl.shape):
        state.reject(codes.BAD_SUBSCRIPT, "a view can drop axes only once", node)
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if len(items) > len(t.shape):
        state.reject(codes.BAD_SUBSCRIPT, f"{t} has {len(t.shape)} axes, got {len(items)}", node)
    offsets = list(view.offsets)
    extents: list[int] = []
    for axis, extent in enumerate(t.shape):
        if axis >= len(items):
            extents.append(extent)
            continue
        start, size = _axis(state, items[axis], extent)
        offsets[axis] = _plus(state, view.offsets[axis], start, items[axis])
        if size is not None:
            extents.append(size)
    if len(extents) != len(t.shape) and extents and _drops_inner(items, len(t.shape)):
        state.reject(
            codes.BAD_SUBSCRIPT,
            "plain indices come before slices: a view drops leading axes only",
            node,
        )
    kind = SmemView(t.dtype, tuple(extents), t.swizzle)
    return View(base=view.base, stage=view.stage, offsets=tuple(offsets), type=kind, loc=loc)


def _drops_inner(items: Sequence[ast.expr], rank: int) -> bool:
    sliced = [isinstance(i, ast.Slice) for i in items] + [True] * (rank - len(items))
    return any(a and not b for a, b in pairwise(sliced))


def _axis(state: State, item: ast.expr, extent: int) -> tuple[Expr, int | None]:
    """Offset and extent of one subscript; None drops the axis."""
    if not isinstance(item, ast.Slice):
        start = _index(state, item, "an offset")
        if isinstance(start, Const) and not 0 <= start.value < extent:
            state.reject(
                codes.BAD_SUBSCRIPT, f"offset {start.value} is outside the extent {extent}", item
            )
        return start, None
    if item.step is not None:
        state.reject(codes.BAD_SUBSCRIPT, "a slice has no step", item)
    loc = state.source.span(item)
    start_e = static(0, loc) if item.lower is None else state.expression(item.lower)
    stop_e = static(extent, loc) if item.upper is None else state.expression(item.upper)
    size = _difference(start_e, stop_e)
    if size is None:
        state.reject(
            codes.NOT_STATIC,
            "the extent of a slice must be known at compile time",
            item,
            helps=("write the stop as start + constant: S[a : a + 64]",),
        )
    if (isinstance(start_e, Static) and start_e.value + size > extent) or not 0 < size <= extent:
        state.reject(
            codes.BAD_SUBSCRIPT,
            f"the slice covers {size} elements, the axis has {extent}",
            item,
            facts={"size": size, "extent": extent},
        )
    if isinstance(start_e, Static):
        return constant(start_e.value, I32, start_e.loc), size
    return start_e, size


def _difference(start: Expr, stop: Expr) -> int | None:
    """stop - start if it is a compile-time number: both known, or stop is start + n."""
    if isinstance(start, Static) and isinstance(stop, Static):
        if isinstance(start.value, int) and isinstance(stop.value, int):
            return stop.value - start.value
        return None
    a, b = linear(start), linear(stop)
    return None if a is None or b is None else b.minus(a)


def _plus(state: State, old: Expr, start: Expr, node: ast.AST) -> Expr:
    if isinstance(old, Const) and old.value == 0:
        return start
    if isinstance(start, Const) and start.value == 0:
        return old
    if isinstance(old, Const) and isinstance(start, Const):
        return constant(old.value + start.value, I32, start.loc)
    add = lookup("add")
    assert add is not None
    return call_primitive(state, add, [old, start], {}, node)
