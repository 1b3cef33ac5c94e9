"""Expansion of ``@cake.inline`` helpers at their calls."""

from __future__ import annotations

import ast

from cake.ir.nodes import Expr, Static
from cake.lang import codes
from cake.lang.scope import InlineFunction, State, static
from cake.lang.single import assigned_once

MAX_DEPTH = 16


def expand(state: State, function: InlineFunction, node: ast.Call) -> Expr:
    """Elaborate the helper's body in place; the value is that of its final ``return``."""
    definition = function.node
    if state.inline_depth >= MAX_DEPTH:
        state.reject(
            codes.TOO_LARGE,
            f"inline helpers nest deeper than {MAX_DEPTH} (is {definition.name} recursive?)",
            node,
        )
    arguments = _arguments(state, definition, node)
    body, result = _split(state, definition)
    state.inline_depth += 1
    state.single.append(assigned_once(body))
    outer = state.scopes
    state.scopes = [outer[0], dict(arguments)]
    try:
        state.execute(state, body)
        loc = state.source.span(node)
        return static(None, loc) if result is None else state.expression(result)
    finally:
        state.scopes = outer
        state.single.pop()
        state.inline_depth -= 1


def _split(state: State, f: ast.FunctionDef) -> tuple[list[ast.stmt], ast.expr | None]:
    body = list(f.body)
    if body and isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    if body and isinstance(body[-1], ast.Return):
        return body[:-1], body[-1].value
    return body, None


def _arguments(state: State, f: ast.FunctionDef, node: ast.Call) -> dict[str, Expr]:
    a = f.args
    if a.vararg or a.kwarg or a.posonlyargs:
        state.reject(codes.BAD_HEADER, f"{f.name}: only plain parameters are allowed", f)
    names = [p.arg for p in (*a.args, *a.kwonlyargs)]
    given: dict[str, Expr] = {}
    if len(node.args) > len(a.args):
        state.reject(codes.BAD_ARGUMENTS, f"{f.name} takes {len(a.args)} arguments", node)
    for name, value in zip(names, node.args, strict=False):
        given[name] = state.expression(value)
    for k in node.keywords:
        if k.arg not in names or k.arg in given:
            state.reject(codes.BAD_ARGUMENTS, f"{f.name}: bad keyword {k.arg}", node)
        given[k.arg] = state.expression(k.value)
    defaults = dict(zip(reversed([p.arg for p in a.args]), reversed(a.defaults), strict=False))
    defaults |= {
        p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None
    }
    for name in names:
        if name not in given:
            if name not in defaults:
                state.reject(codes.BAD_ARGUMENTS, f"{f.name} needs {name}", node)
            given[name] = state.expression(defaults[name])
    return {n: _named(e) for n, e in given.items()}


def _named(e: Expr) -> Expr:
    return static(e.value, e.loc) if isinstance(e, Static) else e
