"""Assignments: variables, compile-time constants, elements of register arrays."""

from __future__ import annotations

import ast

from cake.diag import Related, Span
from cake.ir.dtypes import DTYPES, DType
from cake.ir.nodes import Assign, Const, Element, Expr, Node, SetElement, Static
from cake.ir.types import (
    RegArray,
    Resource,
    Scalar,
    SmemView,
    TensorPlace,
    TmemView,
    Tuple,
    Type,
    Void,
)
from cake.lang import codes
from cake.lang.calls import Typing
from cake.lang.expressions import apply
from cake.lang.fold import BINARY
from cake.lang.scope import Poison, State, Variable, constant, default_dtype


def assign(state: State, node: ast.Assign) -> None:
    if len(node.targets) != 1:
        state.reject(codes.NOT_IN_LANGUAGE, "a = b = ... is not part of the language", node)
    target = node.targets[0]
    if isinstance(target, ast.Subscript):
        _set_element(state, target, state.expression(node.value), node)
        return
    names = target_names(state, target)
    if isinstance(node.value, ast.Tuple) and len(names) > 1:
        _parallel(state, names, node.value, node)
        return
    value = _value(state, node.value)
    if len(names) == 1 and isinstance(value, Static) and _constant(state, names[0], value):
        return
    _store(state, names, value, node)


def _parallel(state: State, names: list[str], value: ast.Tuple, node: ast.Assign) -> None:
    """``a, b = x, y``: one assignment a name; allowed when no value reads an earlier target."""
    if len(value.elts) != len(names):
        state.reject(codes.TYPE_ERROR, f"{len(names)} names, {len(value.elts)} values", node)
    for i, element in enumerate(value.elts):
        read = {n.id for n in ast.walk(element) if isinstance(n, ast.Name)}
        if read & set(names[:i]):
            state.reject(
                codes.NOT_IN_LANGUAGE,
                f"{names[i]} would read a name of the same assignment after its change",
                node,
                helps=("write the assignments one by one, with a temporary",),
            )
    for name, element in zip(names, value.elts, strict=True):
        e = _value(state, element)
        if not (isinstance(e, Static) and _constant(state, name, e)):
            _store(state, [name], e, node)


def _value(state: State, node: ast.expr) -> Expr:
    """The right side of an assignment; ``var(dtype, value)`` declares a typed number."""
    if (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "var"
        and state.find("var") is None
    ):
        return _var(state, node)
    return state.expression(node)


def _var(state: State, node: ast.Call) -> Expr:
    operands = [state.expression(a) for a in node.args]
    if len(operands) != 2 or node.keywords:
        state.reject(codes.BAD_ARGUMENTS, "var takes a dtype and a value", node)
    kind, value = operands
    if not isinstance(kind, Static) or not isinstance(kind.value, DType):
        state.reject(codes.TYPE_ERROR, "var: the first argument is a dtype", node.args[0])
    return Typing(state, "var", state.source.span(node)).coerce(value, kind.value)


def _constant(state: State, name: str, value: Static) -> bool:
    """Bind a compile-time constant, if the name is assigned only once."""
    if name not in state.single[-1] and default_dtype(value.value) is not None:
        return False
    _check_free(state, name, value.loc)
    state.bind(name, value)
    return True


def target_names(state: State, target: ast.expr) -> list[str]:
    items = target.elts if isinstance(target, ast.Tuple) else [target]
    names = []
    for item in items:
        if not isinstance(item, ast.Name):
            state.reject(
                codes.NOT_IN_LANGUAGE,
                "only names and register elements can be assigned",
                item,
                helps=("write memory with store(place, value)",),
            )
        names.append(item.id)
    return names


def _check_free(state: State, name: str, at: Span) -> None:
    meaning = state.find(name)
    if meaning is None or isinstance(meaning, Variable | Static | Poison):
        if name in DTYPES:
            state.reject(codes.REDEFINED, f"{name} is an element type", at)
        return
    related = (
        (Related(span=meaning.loc, message="defined here"),) if isinstance(meaning, Node) else ()
    )
    state.reject(codes.REDEFINED, f"{name} already names something else", at, related=related)


def _store(state: State, names: list[str], value: Expr, node: ast.Assign | ast.AugAssign) -> None:
    loc = state.source.span(node)
    value = _materialise(state, value, node)
    types = value.type.items if isinstance(value.type, Tuple) else (value.type,)
    if len(types) != len(names):
        state.reject(codes.TYPE_ERROR, f"{len(names)} names, {len(types)} results", node)
    targets, declares = [], []
    for name, t in zip(names, types, strict=True):
        old = state.find(name)
        if isinstance(old, Variable):
            _check_same(state, name, old, t, node)
            targets.append(old.ir_name)
            declares.append(False)
        else:
            _check_free(state, name, loc)
            targets.append(declare(state, name, t, loc))
            declares.append(True)
    if len(names) == 1 and not declares[0]:
        old = state.find(names[0])
        if isinstance(old, Variable) and isinstance(value, Const) and value.type != old.type:
            value = Const(value=value.value, type=Scalar(_dtype(old.type)), loc=value.loc)
    state.emit(Assign(targets=tuple(targets), declares=tuple(declares), value=value, loc=loc))


def _dtype(t: Type) -> DType:
    assert isinstance(t, Scalar)
    return t.dtype


def _materialise(state: State, value: Expr, node: ast.AST) -> Expr:
    """A right side that can be held in a variable."""
    if isinstance(value, Static):
        dtype = default_dtype(value.value)
        if dtype is None:
            state.reject(codes.TYPE_ERROR, f"{value.value!r} cannot be held in a variable", node)
        return constant(value.value, dtype, value.loc)
    t = value.type
    if isinstance(t, SmemView | TmemView | TensorPlace | Resource | Void):
        helps = ("read memory with load(...)",) if not isinstance(t, Resource | Void) else ()
        state.reject(codes.TYPE_ERROR, f"{t} cannot be held in a variable", node, helps=helps)
    return value


def declare(state: State, name: str, t: Type, loc: Span) -> str:
    """Bind a new variable; scalars assigned per thread elsewhere become per thread here."""
    key = (loc.line, loc.col)
    if isinstance(t, Scalar) and not t.varying and (key in state.per_thread or state.varying_depth):
        t = Scalar(t.dtype, key in state.per_thread)
    ir_name = state.fresh(name)
    state.bind(name, Variable(ir_name, t, key))
    return ir_name


def _check_same(state: State, name: str, old: Variable, new: Type, node: ast.AST) -> None:
    t = old.type
    if isinstance(t, Scalar) and isinstance(new, Scalar) and t.dtype == new.dtype:
        if not t.varying and (new.varying or _diverges(state, name)):
            state.per_thread.add(old.declared)
        return
    if t != new:
        state.reject(
            codes.TYPE_CHANGED,
            f"{name} is {t} and cannot become {new}",
            node,
            helps=("cast the value, or use another name",),
            facts={"name": name},
        )


def _diverges(state: State, name: str) -> bool:
    """Is the assignment under per-thread control flow that the declaration is outside of?"""
    return state.varying_depth > 0 and name not in state.scopes[-1]


def augmented(state: State, node: ast.AugAssign) -> None:
    op = BINARY.get(type(node.op).__name__)
    if op is None:
        state.reject(codes.NOT_IN_LANGUAGE, f"operator {type(node.op).__name__}=", node)
    if isinstance(node.target, ast.Attribute):
        state.reject(codes.NOT_IN_LANGUAGE, "attributes cannot be assigned", node)
    load = _as_load(node.target)
    value = apply(state, op, [state.expression(load), state.expression(node.value)], node)
    if isinstance(node.target, ast.Subscript):
        _set_element(state, node.target, value, node)
    elif isinstance(node.target, ast.Name):
        _store(state, [node.target.id], value, node)


def _as_load(target: ast.Name | ast.Subscript | ast.Attribute) -> ast.expr:
    copy: ast.expr
    if isinstance(target, ast.Name):
        copy = ast.Name(id=target.id, ctx=ast.Load())
    elif isinstance(target, ast.Subscript):
        copy = ast.Subscript(value=target.value, slice=target.slice, ctx=ast.Load())
    else:
        copy = target
    return ast.copy_location(copy, target)


def _set_element(state: State, target: ast.Subscript, value: Expr, node: ast.stmt) -> None:
    e = state.expression(_as_load(target))
    if not isinstance(e, Element):
        state.reject(
            codes.BAD_SUBSCRIPT,
            "only elements of register arrays can be assigned",
            target,
            helps=("write memory with store(place, value)",),
        )
    base = e.base.type
    assert isinstance(base, RegArray)
    typing = Typing(state, "element assignment", state.source.span(node))
    value = typing.coerce(value, base.dtype)
    if not isinstance(value.type, Scalar):
        state.reject(codes.TYPE_ERROR, f"an element takes a scalar, got {value.type}", node)
    loc = state.source.span(node)
    state.emit(SetElement(array=e.base, index=e.index, value=value, loc=loc))
