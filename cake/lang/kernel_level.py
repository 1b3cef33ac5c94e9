"""Kernel level of a schedule: declarations, kernel-level values, guards, bodies of roles."""

from __future__ import annotations

import ast

from cake.ir.dtypes import I32
from cake.ir.nodes import Assign, RoleBody, Static
from cake.ir.program import Guard, Role
from cake.ir.types import Scalar
from cake.lang import codes
from cake.lang.assignment import declare
from cake.lang.control import nested
from cake.lang.module import heading
from cake.lang.resources import declaration, directive, grid
from cake.lang.scope import Poison, State, Variable, static
from cake.lang.single import assigned_once


def poison_names(state: State, node: ast.stmt) -> None:
    if isinstance(node, ast.Assign):
        for n in ast.walk(node.targets[0]):
            if isinstance(n, ast.Name) and state.find(n.id) is None:
                state.bind(n.id, Poison())


def kernel_level(state: State, node: ast.stmt) -> None:
    if isinstance(node, ast.Expr):
        _directive(state, node)
    elif isinstance(node, ast.Assign):
        _kernel_assign(state, node)
    elif isinstance(node, ast.With):
        _role_body(state, node)
    elif isinstance(node, ast.If):
        _kernel_if(state, node)
    elif not isinstance(node, ast.Pass):
        state.reject(
            codes.WRONG_PLACE,
            f"`{type(node).__name__.lower()}` stands outside a role",
            node,
            helps=("kernel level declares; statements stand under `with role_name:`",),
        )


def _kernel_if(state: State, node: ast.If) -> None:
    cond = state.expression(node.test)
    if not isinstance(cond, Static):
        state.reject(codes.NOT_STATIC, "a condition at kernel level is compile-time", node.test)
    for inner in node.body if cond.value else node.orelse:
        kernel_level(state, inner)


def _directive(state: State, node: ast.Expr) -> None:
    value = node.value
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id == "require":
            _require(state, value)
            return
        if directive(state, value):
            return
    state.reject(
        codes.WRONG_PLACE,
        "this expression has no effect at kernel level",
        node,
        helps=("give it a name, or move it under `with role_name:`",),
    )


def _require(state: State, node: ast.Call) -> None:
    if not node.args or node.keywords:
        state.reject(codes.BAD_ARGUMENTS, "require takes conditions", node)
    for argument in node.args:
        cond = state.expression(argument)
        if isinstance(cond, Static):
            if not cond.value:
                text = ast.unparse(argument)
                state.reject(codes.REQUIREMENT, f"require({text}) does not hold", argument)
        elif not isinstance(cond.type, Scalar) or cond.type.dtype.name != "bool":
            state.reject(codes.TYPE_ERROR, f"require takes a bool, got {cond.type}", argument)
        else:
            state.guards.append(Guard(cond=cond, loc=state.source.span(argument)))


def _kernel_assign(state: State, node: ast.Assign) -> None:
    target = node.targets[0]
    names = [n.id for n in ast.walk(target) if isinstance(n, ast.Name)]
    value = node.value
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        if value.func.id == "grid":
            grid(state, names, value)
            return
        if len(names) == 1 and declaration(state, names[0], value):
            return
    if isinstance(value, ast.Tuple) and len(value.elts) == len(names):
        pairs = list(zip(names, value.elts, strict=True))
    elif len(names) == 1:
        pairs = [(names[0], value)]
    else:
        state.reject(codes.TYPE_ERROR, f"{len(names)} names for one value", node)
    for name, element in pairs:
        _let(state, name, element, node)


def _let(state: State, name: str, element: ast.expr, node: ast.Assign) -> None:
    if state.find(name) is not None:
        state.reject(
            codes.REDEFINED,
            f"{name} already names something else",
            node,
            helps=("kernel-level values do not change; use another name",),
        )
    e = state.expression(element)
    if isinstance(e, Static):
        state.bind(name, static(e.value, state.source.span(node)))
        return
    if not isinstance(e.type, Scalar):
        state.reject(
            codes.WRONG_PLACE,
            f"{e.type} cannot be a kernel-level value",
            node,
            helps=("kernel-level values are scalars; make it under `with role_name:`",),
        )
    loc = state.source.span(node)
    ir_name = state.fresh(name)
    state.bind(name, Variable(ir_name, e.type, (loc.line, loc.col)))
    state.lets.append(Assign(targets=(ir_name,), declares=(True,), value=e, loc=loc))


def _role_body(state: State, node: ast.With) -> None:
    item = node.items[0]
    if len(node.items) != 1 or not isinstance(item.context_expr, ast.Name):
        state.reject(
            codes.WRONG_PLACE,
            "at kernel level `with` opens a role",
            node,
            helps=("write `with role_name:`, one role at a time; rings are used inside roles",),
        )
    role = state.find(item.context_expr.id)
    if not isinstance(role, Role):
        state.reject(codes.TYPE_ERROR, f"{item.context_expr.id} is not a role", item.context_expr)
    if any(r.role == role.name for r in state.roles):
        state.reject(codes.REDEFINED, f"role {role.name} has two bodies", item.context_expr)
    state.unit_threads = role.unit_threads
    state.single.append(assigned_once(node.body))
    unit = None
    # Roles are functions of their own: each may use the same names.
    kernel_level = set(state.used)
    try:
        with nested(state) as body:
            if item.optional_vars is not None:
                unit = _unit_name(state, item.optional_vars)
            state.execute(state, node.body)
    finally:
        state.single.pop()
        state.unit_threads = 0
        state.used = kernel_level
        state.suffixes.clear()
    loc = state.source.span(item.context_expr)
    state.roles.append(RoleBody(role=role.name, unit=unit, body=tuple(body), loc=loc))


def _unit_name(state: State, node: ast.expr) -> str:
    if not isinstance(node, ast.Name):
        state.reject(codes.BAD_ARGUMENTS, "`with role as name:`", node)
    return declare(state, node.id, Scalar(I32), state.source.span(node))


def check_roles(state: State, f: ast.FunctionDef) -> None:
    bodies = {r.role for r in state.roles}
    for r in state.resources.values():
        if isinstance(r, Role) and r.name not in bodies and not state.diagnostics.has_errors:
            state.reject(
                codes.WRONG_PLACE,
                f"role {r.name} has no body",
                r.loc,
                helps=(f"write `with {r.name}:`, or leave the role out",),
            )
    if not bodies and not state.diagnostics.has_errors:
        state.reject(
            codes.WRONG_PLACE,
            f"{f.name} has no role",
            heading(state, f),
            helps=("declare `r = role(warps=8)` and write `with r:`",),
        )
