"""Module level of a schedule file: imports of cake, constants, inline helpers, schedules."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from cake.diag import Diagnostic, Diagnostics, Related, Span
from cake.ir.nodes import Static
from cake.lang import codes
from cake.lang.expressions import expression
from cake.lang.scope import InlineFunction, Meaning, Rejected, Source, State, place
from cake.lang.statements import statements
from cake.targets import get as get_target


def new_state(source: Source, diagnostics: Diagnostics, names: Mapping[str, Meaning]) -> State:
    """A state at module level; a schedule's own target is set when its decorator is read."""
    return State(source, get_target("sm_90a"), diagnostics, [dict(names)], expression, statements)


def heading(state: State, node: ast.FunctionDef) -> Span:
    """The place of ``def name``, not of the whole function."""
    full = state.source.span(node)
    return place(full.file, full.line, full.col, full.col + 4 + len(node.name))


class Module:
    """Module level: imports of cake, constants, inline helpers, schedules."""

    def __init__(self, source: Source, diagnostics: Diagnostics) -> None:
        self.source = source
        self.diagnostics = diagnostics
        self.names: dict[str, Meaning] = {}
        self.schedules: list[ast.FunctionDef] = []

    def read(self, tree: ast.Module) -> None:
        before = len(self.diagnostics)
        for node in tree.body:
            try:
                self._statement(node)
            except Rejected:
                continue
        if not self.schedules and len(self.diagnostics) == before:
            what = "is empty" if not tree.body else "holds no schedule"
            span = place(self.source.file, 1, 1, 2)
            self.diagnostics.add(
                Diagnostic.of(
                    codes.NO_SCHEDULE,
                    f"the file {what}",
                    span,
                    helps=('decorate a function with @cake.schedule(target="sm_90a")',),
                )
            )

    def _state(self) -> State:
        return new_state(self.source, self.diagnostics, self.names)

    def _statement(self, node: ast.stmt) -> None:
        state = self._state()
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(state, node)
        elif isinstance(node, ast.FunctionDef):
            self._function(state, node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = state.expression(node.value)
            if not isinstance(value, Static):
                state.reject(codes.NOT_STATIC, "a module-level value is compile-time", node)
            self.names[node.targets[0].id] = value
        elif not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)):
            state.reject(
                codes.NOT_IN_LANGUAGE,
                f"`{type(node).__name__.lower()}` at module level is not part of the language",
                node,
                helps=("a file holds schedules, inline helpers and constants",),
            )

    def _import(self, state: State, node: ast.Import | ast.ImportFrom) -> None:
        if isinstance(node, ast.Import):
            foreign = [a.name for a in node.names if a.name != "cake"]
        else:
            allowed = ("cake.language", "__future__")
            foreign = [] if node.module in allowed else [node.module or "."]
        if foreign:
            state.reject(
                codes.FOREIGN_IMPORT,
                f"import of {', '.join(foreign)}: a schedule cannot import; nothing is executed",
                node,
                helps=("remove the import; primitives are known by name",),
                facts={"module": foreign[0]},
            )

    def _function(self, state: State, node: ast.FunctionDef) -> None:
        kinds = [_decorator(d) for d in node.decorator_list]
        if kinds == ["inline"]:
            self.names[node.name] = InlineFunction(node)
        elif kinds == ["schedule"]:
            self._schedule(state, node)
        else:
            state.reject(
                codes.BAD_HEADER,
                f"{node.name} needs exactly one decorator",
                node.decorator_list[0] if node.decorator_list else heading(state, node),
                helps=('@cake.schedule(target="sm_90a") or @cake.inline',),
            )

    def _schedule(self, state: State, node: ast.FunctionDef) -> None:
        for other in self.schedules:
            if other.name == node.name:
                first = Related(span=heading(state, other), message="the other one")
                state.reject(
                    codes.REDEFINED,
                    f"two schedules are called {node.name}",
                    heading(state, node),
                    related=(first,),
                )
        self.schedules.append(node)


def _decorator(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "cake" else ""
    return target.id if isinstance(target, ast.Name) else ""
