"""From the text of a schedule file to programs."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import cake.ops  # noqa: F401  (registers the primitives)
from cake.diag import CakeError, Diagnostic, Diagnostics, Span
from cake.ir.nodes import Assign, RoleBody, Static
from cake.ir.program import Guard, LaunchOptions, Program, Role
from cake.ir.types import Scalar
from cake.lang import codes
from cake.lang.expressions import expression
from cake.lang.header import parameters
from cake.lang.resources import declaration, directive, grid
from cake.lang.scope import (
    Aborted,
    InlineFunction,
    Meaning,
    Rejected,
    Source,
    State,
    Variable,
    place,
    static,
)
from cake.lang.single import assigned_once
from cake.lang.statements import nested, statements
from cake.targets import UnknownTarget
from cake.targets import get as get_target
from cake.targets import names as target_names

MAX_ROUNDS = 8
"""Rounds of finding per-thread variables; each adds at least one, and real code needs two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """Programs of a file in source order, and everything found on the way."""

    programs: tuple[Program, ...]
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        return not any(d.severity == "error" for d in self.diagnostics)

    def program(self, name: str | None = None) -> Program:
        """The only program, or the one called ``name``; raises CakeError if there were errors."""
        if not self.ok:
            raise CakeError(self.diagnostics)
        for p in self.programs:
            if name is None or p.name == name:
                return p
        raise KeyError(name)


def parse(
    text: str,
    file: str = "<text>",
    *,
    meta: Mapping[str, Any] | None = None,
    target: str | None = None,
    line_offset: int = 0,
) -> Parsed:
    """Elaborate every schedule of a file. Never executes anything of it.

    Args:
        text: the file's text.
        file: name used in locations.
        meta: meta parameters by name; a parameter that a schedule lacks is an error unless another
            schedule of the file has it.
        target: replaces the target of the decorator (exact: nothing is lowered for another one).
        line_offset: added to line numbers, for a function taken from a larger file.
    """
    diagnostics = Diagnostics()
    source = Source(file, text, line_offset)
    tree = _tree(source, diagnostics)
    if tree is None:
        return Parsed(programs=(), diagnostics=tuple(diagnostics))
    module = _Module(source, diagnostics)
    module.read(tree)
    _check_bindings(module, meta or {})
    programs = []
    for f in module.schedules:
        names = {p.arg for p in f.args.kwonlyargs}
        bound = {k: v for k, v in (meta or {}).items() if k in names}
        program = _schedule(module, f, bound, target)
        if program is not None:
            programs.append(program)
    return Parsed(programs=tuple(programs), diagnostics=tuple(diagnostics))


def _tree(source: Source, diagnostics: Diagnostics) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # Doubtful literals ("1if") are legal syntax; what they mean is checked below.
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source.text)
    except SyntaxError as error:
        line = (error.lineno or 1) + source.line_offset
        col = error.offset or 1
        end = error.end_offset or col + 1
        span = place(source.file, line, col, max(end, col + 1))
        message = f"not Python syntax: {error.msg}"
        diagnostics.add(Diagnostic.of(codes.SYNTAX, message, span))
    except (ValueError, RecursionError, MemoryError) as error:
        span = place(source.file, 1, 1, 2)
        diagnostics.add(Diagnostic.of(codes.SYNTAX, f"the file cannot be parsed: {error}", span))
    return None


def _check_bindings(module: _Module, meta: Mapping[str, Any]) -> None:
    known = {p.arg for f in module.schedules for p in f.args.kwonlyargs}
    for name in meta:
        if name not in known and module.schedules:
            listed = ", ".join(sorted(known)) or "none"
            span = module.source.span(module.schedules[0])
            module.diagnostics.add(
                Diagnostic.of(
                    codes.META_DOMAIN,
                    f"there is no meta parameter {name} (known: {listed})",
                    place(span.file, span.line, span.col, span.col + 1),
                    facts={"name": name},
                )
            )


class _Module:
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
            span = place(self.source.file, 1 + self.source.line_offset, 1, 2)
            self.diagnostics.add(
                Diagnostic.of(
                    codes.NO_SCHEDULE,
                    f"the file {what}",
                    span,
                    helps=('decorate a function with @cake.schedule(target="sm_90a")',),
                )
            )

    def _state(self) -> State:
        return State(self.source, get_target("sm_90a"), self.diagnostics, [dict(self.names)])

    def _statement(self, node: ast.stmt) -> None:
        state = self._state()
        if isinstance(node, ast.Import | ast.ImportFrom):
            self._import(state, node)
        elif isinstance(node, ast.FunctionDef):
            self._function(state, node)
        elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            value = expression(state, node.value)
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
            self.schedules.append(node)
        else:
            state.reject(
                codes.BAD_HEADER,
                f"{node.name} needs exactly one decorator",
                node.decorator_list[0] if node.decorator_list else _heading(state, node),
                helps=('@cake.schedule(target="sm_90a") or @cake.inline',),
            )


def _heading(state: State, node: ast.FunctionDef) -> Span:
    """The place of ``def name``, not of the whole function."""
    full = state.source.span(node)
    return place(full.file, full.line, full.col, full.col + 4 + len(node.name))


def _decorator(node: ast.expr) -> str:
    target = node.func if isinstance(node, ast.Call) else node
    if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name):
        return target.attr if target.value.id == "cake" else ""
    return target.id if isinstance(target, ast.Name) else ""


def _target_name(state: State, f: ast.FunctionDef) -> str:
    node = f.decorator_list[0]
    if isinstance(node, ast.Call) and not node.args:
        keywords = {k.arg: k.value for k in node.keywords}
        value = keywords.get("target")
        if len(keywords) == 1 and isinstance(value, ast.Constant) and isinstance(value.value, str):
            return value.value
    state.reject(codes.BAD_HEADER, 'the decorator is @cake.schedule(target="sm_90a")', node)


def _schedule(
    module: _Module, f: ast.FunctionDef, meta: Mapping[str, Any], target: str | None
) -> Program | None:
    """Elaborate one schedule; rounds repeat until no more per-thread variables are found."""
    per_thread: set[tuple[int, int]] = set()
    for _ in range(MAX_ROUNDS):
        diagnostics = Diagnostics()
        state = State(
            module.source,
            get_target("sm_90a"),
            diagnostics,
            [dict(module.names)],
            per_thread=set(per_thread),
        )
        program: Program | None = None
        try:
            program = _elaborate(state, f, meta, target)
        except (Rejected, Aborted):
            program = None
        if state.per_thread == per_thread:
            break
        per_thread = state.per_thread
    module.diagnostics.extend(diagnostics)
    return None if diagnostics.has_errors else program


def _elaborate(
    state: State, f: ast.FunctionDef, meta: Mapping[str, Any], target: str | None
) -> Program:
    name = target or _target_name(state, f)
    try:
        state.target = get_target(name)
    except UnknownTarget:
        state.reject(
            codes.UNKNOWN_TARGET,
            f"unknown target {name}",
            f.decorator_list[0],
            helps=(f"targets: {', '.join(target_names())}",),
        )
    parameters(state, f, meta)
    body = list(f.body)
    state.single.append(assigned_once(body))
    for node in body:
        try:
            _kernel_level(state, node)
        except Rejected:
            _poison_names(state, node)
    _check_roles(state, f)
    return Program(
        name=f.name,
        target=name,
        params=tuple(state.params),
        metas=tuple(state.metas),
        guards=tuple(state.guards),
        lets=tuple(state.lets),
        resources=tuple(state.resources.values()),
        roles=tuple(state.roles),
        loc=_heading(state, f),
    )


def _poison_names(state: State, node: ast.stmt) -> None:
    from cake.lang.scope import Poison

    if isinstance(node, ast.Assign):
        for n in ast.walk(node.targets[0]):
            if isinstance(n, ast.Name) and state.find(n.id) is None:
                state.bind(n.id, Poison())


def _kernel_level(state: State, node: ast.stmt) -> None:
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
    cond = expression(state, node.test)
    if not isinstance(cond, Static):
        state.reject(codes.NOT_STATIC, "a condition at kernel level is compile-time", node.test)
    for inner in node.body if cond.value else node.orelse:
        _kernel_level(state, inner)


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
    state.reject(codes.WRONG_PLACE, "this expression has no effect at kernel level", node)


def _require(state: State, node: ast.Call) -> None:
    if not node.args or node.keywords:
        state.reject(codes.BAD_ARGUMENTS, "require takes conditions", node)
    for argument in node.args:
        cond = expression(state, argument)
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
    e = expression(state, element)
    if isinstance(e, Static):
        state.bind(name, static(e.value, state.source.span(node)))
        return
    if not isinstance(e.type, Scalar):
        state.reject(codes.WRONG_PLACE, f"{e.type} cannot be a kernel-level value", node)
    loc = state.source.span(node)
    ir_name = state.fresh(name)
    state.bind(name, Variable(ir_name, e.type, (loc.line, loc.col)))
    state.lets.append(Assign(targets=(ir_name,), declares=(True,), value=e, loc=loc))


def _role_body(state: State, node: ast.With) -> None:
    item = node.items[0]
    if len(node.items) != 1 or not isinstance(item.context_expr, ast.Name):
        state.reject(codes.WRONG_PLACE, "at kernel level `with` opens a role", node)
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
            statements(state, node.body)
    finally:
        state.single.pop()
        state.unit_threads = 0
        state.used = kernel_level
        state.suffixes.clear()
    loc = state.source.span(item.context_expr)
    state.roles.append(RoleBody(role=role.name, unit=unit, body=tuple(body), loc=loc))


def _unit_name(state: State, node: ast.expr) -> str:
    from cake.ir.dtypes import I32
    from cake.lang.statements import declare

    if not isinstance(node, ast.Name):
        state.reject(codes.BAD_ARGUMENTS, "`with role as name:`", node)
    return declare(state, node.id, Scalar(I32), state.source.span(node))


def _check_roles(state: State, f: ast.FunctionDef) -> None:
    bodies = {r.role for r in state.roles}
    for r in state.resources.values():
        if isinstance(r, Role) and r.name not in bodies and not state.diagnostics.has_errors:
            state.reject(codes.WRONG_PLACE, f"role {r.name} has no body", r.loc)
    if not bodies and not state.diagnostics.has_errors:
        state.reject(
            codes.WRONG_PLACE,
            f"{f.name} has no role",
            _heading(state, f),
            helps=("declare `r = role(warps=8)` and write `with r:`",),
        )


def launch_options(program: Program) -> tuple[int, bool]:
    """(min_blocks, pdl) of a program."""
    found: Sequence[LaunchOptions] = program.find(LaunchOptions)
    return (found[0].min_blocks, found[0].pdl) if found else (1, False)
