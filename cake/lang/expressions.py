"""Elaboration of expressions: syntax to typed IR, folding what is known at compile time."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from itertools import pairwise
from typing import NoReturn

from cake.diag import Span
from cake.ir.dtypes import I32
from cake.ir.nodes import (
    Const,
    DimRef,
    Element,
    Expr,
    ResourceRef,
    Static,
    TensorRef,
    VarRef,
    View,
)
from cake.ir.program import (
    ResourceDecl,
    ScalarParam,
    Smem,
    TensorParam,
    Tmem,
    WorkspaceDecl,
)
from cake.ir.types import (
    RegArray,
    Resource,
    Scalar,
    Slot,
    SmemView,
    TensorPlace,
    TmemView,
)
from cake.lang import codes, fold
from cake.lang.calls import call_primitive
from cake.lang.scope import (
    InlineFunction,
    Poison,
    Rejected,
    State,
    Variable,
    constant,
    default_dtype,
    static,
)
from cake.ops.base import all_primitives, lookup

KERNEL_LEVEL = frozenset(
    {"smem", "tmem", "pool", "role", "pipeline", "barrier", "named_barrier", "persistent", "grid"}
    | {"workspace", "cluster", "launch", "require"}
)
"""Calls that declare: they mean nothing inside an expression."""


def expression(state: State, node: ast.expr) -> Expr:
    """Elaborate one expression. Compile-time values come back as ``Static``."""
    if isinstance(node, ast.Constant):
        return _literal(state, node)
    if isinstance(node, ast.Name):
        return name(state, node)
    if isinstance(node, ast.BinOp):
        return _binary(state, node)
    if isinstance(node, ast.UnaryOp):
        return _unary(state, node)
    if isinstance(node, ast.Compare):
        return _compare(state, node)
    if isinstance(node, ast.BoolOp):
        return _boolean(state, node)
    if isinstance(node, ast.IfExp):
        return _conditional(state, node)
    if isinstance(node, ast.Call):
        return call(state, node)
    if isinstance(node, ast.Subscript):
        return _subscript(state, node)
    if isinstance(node, ast.Attribute):
        return _attribute(state, node)
    if isinstance(node, ast.Tuple | ast.List):
        items = [static_value(state, e) for e in node.elts]
        return static(tuple(items), state.source.span(node))
    state.reject(
        codes.NOT_IN_LANGUAGE,
        f"{_construct(node)} is not part of the language",
        node,
        helps=_instead(node),
    )


def _construct(node: ast.AST) -> str:
    names = {
        "Lambda": "a lambda",
        "ListComp": "a comprehension",
        "SetComp": "a comprehension",
        "DictComp": "a comprehension",
        "GeneratorExp": "a generator expression",
        "Dict": "a dictionary",
        "Set": "a set",
        "JoinedStr": "an f-string",
        "Await": "await",
        "Yield": "yield",
        "NamedExpr": "an assignment expression",
        "Starred": "a starred expression",
    }
    return names.get(type(node).__name__, type(node).__name__)


def _instead(node: ast.AST) -> tuple[str, ...]:
    if isinstance(node, ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp):
        return ("write a `for i in static_range(n):` loop",)
    if isinstance(node, ast.Lambda):
        return ("write an `@cake.inline` function",)
    if isinstance(node, ast.NamedExpr):
        return ("assign in a statement of its own",)
    return ("see the grammar page of the documentation",)


def _literal(state: State, node: ast.Constant) -> Expr:
    if isinstance(node.value, bool | int | float | str) or node.value is None:
        return static(node.value, state.source.span(node))
    state.reject(
        codes.NOT_IN_LANGUAGE,
        f"a {type(node.value).__name__} literal is not part of the language",
        node,
        helps=("literals are ints, floats, True, False, None and strings",),
    )


def name(state: State, node: ast.Name) -> Expr:
    """A name as a value."""
    meaning = state.find(node.id)
    loc = state.source.span(node)
    if isinstance(meaning, Static):
        return static(meaning.value, loc)
    if isinstance(meaning, Variable):
        return VarRef(name=meaning.ir_name, type=meaning.type, loc=loc)
    if isinstance(meaning, Expr):
        return meaning
    if isinstance(meaning, ScalarParam):
        return DimRef(name=meaning.name, type=Scalar(meaning.dtype), loc=loc)
    if isinstance(meaning, TensorParam):
        return ResourceRef(name=meaning.name, type=Resource("tensor"), loc=loc)
    if isinstance(meaning, Smem) and meaning.stages is None:
        return _whole(state, meaning, None, loc)
    if isinstance(meaning, ResourceDecl):
        kind = type(meaning).__name__.lower()
        return ResourceRef(name=meaning.name, type=Resource(kind), loc=loc)
    if isinstance(meaning, Poison):
        raise Rejected
    if isinstance(meaning, InlineFunction) or lookup(node.id) is not None:
        state.reject(codes.TYPE_ERROR, f"{node.id} is a function; call it", node)
    unknown(state, node.id, node)


def unknown(state: State, text: str, node: ast.AST) -> NoReturn:
    """Reject an unknown name, with the nearest known ones."""
    if text in KERNEL_LEVEL:
        state.reject(
            codes.WRONG_PLACE,
            f"{text}(...) declares; it stands at kernel level, before the roles",
            node,
        )
    known = {n for scope in state.scopes for n in scope} | {p.name for p in all_primitives()}
    near = difflib.get_close_matches(text, sorted(known), 2)
    helps = (f"did you mean {' or '.join(near)}?",) if near else ()
    state.reject(codes.UNKNOWN_NAME, f"{text} is not defined here", node, helps=helps)


def static_value(state: State, node: ast.expr, what: str = "this value") -> object:
    """The Python value of an expression that must be known at compile time."""
    e = expression(state, node)
    if isinstance(e, Static):
        return e.value
    state.reject(codes.NOT_STATIC, f"{what} must be known at compile time, got {e.type}", node)


def apply(state: State, op: str, operands: Sequence[Expr], node: ast.AST) -> Expr:
    """An operator or foldable primitive on operands."""
    if op in fold.OPERATORS and all(isinstance(e, Static) for e in operands):
        values = [e.value for e in operands if isinstance(e, Static)]
        try:
            return static(fold.OPERATORS[op](*values), state.source.span(node))
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            state.reject(codes.TYPE_ERROR, f"compile-time {op} fails: {error}", node)
    primitive = lookup(op)
    if primitive is None:
        state.reject(codes.NOT_IN_LANGUAGE, f"{op} needs compile-time operands", node)
    return call_primitive(state, primitive, operands, {}, node)


def _binary(state: State, node: ast.BinOp) -> Expr:
    op = fold.BINARY.get(type(node.op).__name__)
    if op is None:
        state.reject(codes.NOT_IN_LANGUAGE, f"operator {type(node.op).__name__}", node)
    left, right = expression(state, node.left), expression(state, node.right)
    return apply(state, op, [left, right], node)


def _unary(state: State, node: ast.UnaryOp) -> Expr:
    if isinstance(node.op, ast.UAdd):
        return expression(state, node.operand)
    op = fold.UNARY.get(type(node.op).__name__)
    if op is None:
        state.reject(
            codes.NOT_IN_LANGUAGE, "operator ~", node, helps=("use x ^ mask, or `not` for bool",)
        )
    return apply(state, op, [expression(state, node.operand)], node)


def _compare(state: State, node: ast.Compare) -> Expr:
    left = expression(state, node.left)
    result: Expr | None = None
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        op = fold.COMPARE.get(type(operator).__name__)
        if op is None:
            state.reject(
                codes.NOT_IN_LANGUAGE,
                f"comparison `{type(operator).__name__}` is not part of the language",
                node,
                helps=("use ==, !=, <, <=, >, >=",),
            )
        right = expression(state, comparator)
        part = apply(state, op, [left, right], node)
        result = part if result is None else apply(state, "and_", [result, part], node)
        left = right
    assert result is not None
    return result


def _boolean(state: State, node: ast.BoolOp) -> Expr:
    op = "and_" if isinstance(node.op, ast.And) else "or_"
    result = expression(state, node.values[0])
    for value in node.values[1:]:
        result = apply(state, op, [result, expression(state, value)], node)
    return result


def _conditional(state: State, node: ast.IfExp) -> Expr:
    cond = expression(state, node.test)
    if isinstance(cond, Static):
        return expression(state, node.body if cond.value else node.orelse)
    operands = [cond, expression(state, node.body), expression(state, node.orelse)]
    return apply(state, "select", operands, node)


def call(state: State, node: ast.Call) -> Expr:
    """A call: primitive, compile-time function, or inline helper."""
    if isinstance(node.func, ast.Attribute):
        state.reject(
            codes.NOT_IN_LANGUAGE,
            f"method call .{node.func.attr}() is not an expression",
            node,
            helps=("primitives are functions: name(operand, ...)",),
        )
    if not isinstance(node.func, ast.Name):
        state.reject(codes.NOT_IN_LANGUAGE, "only named functions can be called", node.func)
    callee = node.func.id
    meaning = state.find(callee)
    if isinstance(meaning, InlineFunction):
        from cake.lang.inline import expand

        return expand(state, meaning, node)
    positional = [_argument(state, a) for a in node.args]
    keywords = {k.arg: _argument(state, k.value) for k in node.keywords if k.arg is not None}
    if len(keywords) != len(node.keywords):
        state.reject(codes.NOT_IN_LANGUAGE, "** arguments are not part of the language", node)
    if callee in fold.FUNCTIONS:
        return _compile_time_call(state, callee, positional, node)
    if callee in fold.OPERATORS and not keywords:
        return apply(state, callee, positional, node)
    primitive = lookup(callee)
    if primitive is None:
        if meaning is None:
            unknown(state, callee, node.func)
        state.reject(codes.TYPE_ERROR, f"{callee} cannot be called", node.func)
    return call_primitive(state, primitive, positional, keywords, node)


def _argument(state: State, node: ast.expr) -> Expr:
    if isinstance(node, ast.Starred):
        state.reject(codes.NOT_IN_LANGUAGE, "* arguments are not part of the language", node)
    if isinstance(node, ast.Tuple):
        return _tuple_argument(state, node)
    return expression(state, node)


def _tuple_argument(state: State, node: ast.Tuple) -> Expr:
    """A tuple operand: compile-time values, or (resource, slot) pairs as a tuple of expressions."""
    items = [expression(state, e) for e in node.elts]
    if all(isinstance(e, Static) for e in items):
        values = tuple(e.value for e in items if isinstance(e, Static))
        return static(values, state.source.span(node))
    state.reject(codes.NOT_STATIC, "a tuple argument holds compile-time values", node)


def _compile_time_call(state: State, callee: str, operands: list[Expr], node: ast.Call) -> Expr:
    loc = state.source.span(node)
    if all(isinstance(e, Static) for e in operands):
        values = [e.value for e in operands if isinstance(e, Static)]
        try:
            return static(fold.FUNCTIONS[callee](*values), loc)
        except (TypeError, ValueError, ZeroDivisionError, OverflowError) as error:
            state.reject(codes.TYPE_ERROR, f"{callee}: {error}", node)
    if callee == "cdiv" and len(operands) == 2:
        a, b = operands
        less = apply(state, "sub", [b, static(1, loc)], node)
        return apply(state, "floordiv", [apply(state, "add", [a, less], node), b], node)
    state.reject(codes.NOT_STATIC, f"{callee} takes compile-time values", node)


# -- subscripts ------------------------------------------------------------------------------------


def _attribute(state: State, node: ast.Attribute) -> Expr:
    if node.attr == "T":
        e = expression(state, node.value)
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


def _subscript(state: State, node: ast.Subscript) -> Expr:
    loc = state.source.span(node)
    if isinstance(node.value, ast.Name):
        meaning = state.find(node.value.id)
        if isinstance(meaning, TensorParam | WorkspaceDecl):
            return _place(state, meaning, node, loc)
        if isinstance(meaning, Smem | Tmem) and meaning.stages is not None:
            return _whole(state, meaning, _stage(state, node.slice), loc)
    base = expression(state, node.value)
    if isinstance(base, View):
        return _narrow(state, base, node, loc)
    if isinstance(base, Static) and isinstance(base.value, tuple):
        i = static_value(state, node.slice, "a tuple index")
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
    e = expression(state, node)
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
    e = expression(state, node)
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


def _whole(state: State, decl: Smem | Tmem, stage: Expr | None, loc: Span) -> View:
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
    lower = static(0, state.source.span(item)) if item.lower is None else None
    start_e = lower if lower is not None else expression(state, item.lower)  # type: ignore[arg-type]
    stop_e = (
        static(extent, state.source.span(item))
        if item.upper is None
        else expression(state, item.upper)
    )
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
    from cake.lang.linear import linear

    a, b = linear(start), linear(stop)
    return None if a is None or b is None else b.minus(a)


def _plus(state: State, old: Expr, start: Expr, node: ast.AST) -> Expr:
    if isinstance(old, Const) and old.value == 0:
        return start
    if isinstance(start, Const) and start.value == 0:
        return old
    if isinstance(old, Const) and isinstance(start, Const):
        return constant(old.value + start.value, I32, start.loc)
    return apply(state, "add", [old, start], node)
