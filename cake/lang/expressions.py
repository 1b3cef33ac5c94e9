"""Elaboration of expressions: syntax to typed IR, folding what is known at compile time."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Sequence
from typing import NoReturn

from cake.ir.nodes import (
    DimRef,
    Expr,
    ResourceRef,
    Static,
    VarRef,
)
from cake.ir.program import (
    ResourceDecl,
    ScalarParam,
    Smem,
    TensorParam,
)
from cake.ir.types import (
    Resource,
    Scalar,
)
from cake.lang import codes, fold
from cake.lang.calls import call_primitive
from cake.lang.inline import expand
from cake.lang.scope import (
    InlineFunction,
    Poison,
    Rejected,
    State,
    Variable,
    static,
)
from cake.lang.subscripts import attribute, subscript, whole_view
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
        return subscript(state, node)
    if isinstance(node, ast.Attribute):
        return attribute(state, node)
    if isinstance(node, ast.Tuple | ast.List):
        items = [state.static_value(e) for e in node.elts]
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
        return whole_view(state, meaning, None, loc)
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
            helps=("move it in front of the first `with role_name:`",),
        )
    known = {n for scope in state.scopes for n in scope} | {p.name for p in all_primitives()}
    near = difflib.get_close_matches(text, sorted(known), 2)
    helps = (f"did you mean {' or '.join(near)}?",) if near else ()
    state.reject(codes.UNKNOWN_NAME, f"{text} is not defined here", node, helps=helps)


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
