"""Statements inside roles: which handler each has, and what to write instead of the others."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import Any

from cake.ir.nodes import Call, Do, Static
from cake.lang import codes
from cake.lang.assignment import assign, augmented
from cake.lang.control import for_, if_, while_, with_
from cake.lang.expressions import call
from cake.lang.scope import Poison, Rejected, State


def statements(state: State, body: Sequence[ast.stmt]) -> None:
    """Elaborate a block into ``state.block``; a rejected statement does not stop the next."""
    for node in body:
        try:
            _statement(state, node)
        except Rejected:
            _poison(state, node)


def _poison(state: State, node: ast.stmt) -> None:
    """Names a rejected assignment would have defined: their uses are not errors of their own."""
    targets: list[ast.expr] = []
    if isinstance(node, ast.Assign):
        targets = node.targets
    elif isinstance(node, ast.AnnAssign):
        targets = [node.target]
    for target in targets:
        for n in ast.walk(target):
            if isinstance(n, ast.Name) and state.find(n.id) is None:
                state.bind(n.id, Poison())


def _statement(state: State, node: ast.stmt) -> None:
    handlers: dict[type[ast.stmt], Callable[[State, Any], None]] = {
        ast.Assign: assign,
        ast.AugAssign: augmented,
        ast.Expr: _expression_statement,
        ast.For: for_,
        ast.While: while_,
        ast.If: if_,
        ast.With: with_,
        ast.Pass: lambda s, n: None,
    }
    handler = handlers.get(type(node))
    if handler is None:
        state.reject(
            codes.NOT_IN_LANGUAGE,
            f"`{type(node).__name__.lower()}` is not part of the language",
            node,
            helps=(_INSTEAD.get(type(node).__name__, "see the grammar page"),),
        )
    handler(state, node)


_INSTEAD = {
    "Return": "a role has no result; an inline helper returns in its last statement",
    "Break": "put the condition into `while cond:`",
    "Continue": "put the rest of the body under `if`",
    "Try": "there are no exceptions in a kernel",
    "Raise": "there are no exceptions in a kernel",
    "Assert": "use require(...) over dimensions",
    "Import": "a schedule cannot import; nothing of the file is executed",
    "ImportFrom": "a schedule cannot import; nothing of the file is executed",
    "FunctionDef": "define helpers at module level with @cake.inline",
    "AnnAssign": "types are inferred; write name = value",
    "Delete": "names live to the end of their block",
    "Global": "there are no globals",
    "Match": "use if / else",
}


def _expression_statement(state: State, node: ast.Expr) -> None:
    if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
        return
    if not isinstance(node.value, ast.Call):
        state.reject(codes.NOT_IN_LANGUAGE, "an expression without effect", node)
    value = call(state, node.value)
    if isinstance(value, Call):
        state.emit(Do(call=value, loc=state.source.span(node)))
    elif not isinstance(value, Static):
        state.reject(codes.NOT_IN_LANGUAGE, "an expression without effect", node)
