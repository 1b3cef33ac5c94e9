"""From the text of a schedule file to programs."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import cake.ops  # noqa: F401  (registers the primitives)
from cake.diag import CakeError, Diagnostic, Diagnostics
from cake.ir.program import LaunchOptions, Program
from cake.lang import codes
from cake.lang.allowances import allowances
from cake.lang.header import parameters, target_name
from cake.lang.kernel_level import check_roles, kernel_level, poison_names
from cake.lang.module import Module, heading, new_state
from cake.lang.scope import Aborted, Rejected, Source, State, place, static
from cake.lang.single import assigned_once
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
    constants: Mapping[str, bool | int | float | str] | None = None,
) -> Parsed:
    """Elaborate every schedule of a file. Never executes anything of it.

    Args:
        text: the file's text.
        file: name used in locations.
        meta: meta parameters by name; a parameter that a schedule lacks is an error unless another
            schedule of the file has it.
        target: replaces the target of the decorator (exact: nothing is lowered for another one).
        constants: compile-time values that the file may name besides its own.
    """
    diagnostics = Diagnostics()
    source = Source(file, text)
    tree = _tree(source, diagnostics)
    if tree is None:
        return Parsed(programs=(), diagnostics=tuple(diagnostics))
    module = Module(source, diagnostics)
    module.names |= {n: static(v, place(file, 1, 1, 2)) for n, v in (constants or {}).items()}
    module.read(tree)
    _check_bindings(module, meta or {})
    allowed = allowances(source, module.diagnostics, module.schedules)
    programs = []
    for f in module.schedules:
        names = {p.arg for p in f.args.kwonlyargs}
        bound = {k: v for k, v in (meta or {}).items() if k in names}
        program = _schedule(module, f, bound, target)
        if program is not None:
            programs.append(replace(program, allowances=allowed[f.name]))
    return Parsed(programs=tuple(programs), diagnostics=tuple(diagnostics))


def _tree(source: Source, diagnostics: Diagnostics) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            # Doubtful literals ("1if") are legal syntax; what they mean is checked below.
            warnings.simplefilter("ignore", SyntaxWarning)
            return ast.parse(source.text)
    except SyntaxError as error:
        line = error.lineno or 1
        col = error.offset or 1
        end = error.end_offset or col + 1
        span = place(source.file, line, col, max(end, col + 1))
        message = f"not Python syntax: {error.msg}"
        diagnostics.add(Diagnostic.of(codes.SYNTAX, message, span))
    except (ValueError, RecursionError, MemoryError) as error:
        span = place(source.file, 1, 1, 2)
        diagnostics.add(Diagnostic.of(codes.SYNTAX, f"the file cannot be parsed: {error}", span))
    return None


def _check_bindings(module: Module, meta: Mapping[str, Any]) -> None:
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


def _schedule(
    module: Module, f: ast.FunctionDef, meta: Mapping[str, Any], target: str | None
) -> Program | None:
    """Elaborate one schedule; rounds repeat until no more per-thread variables are found."""
    per_thread: set[tuple[int, int]] = set()
    for _ in range(MAX_ROUNDS):
        diagnostics = Diagnostics()
        state = new_state(module.source, diagnostics, module.names)
        state.per_thread = set(per_thread)
        program: Program | None = None
        try:
            program = _elaborate(state, f, meta, target)
        except (Rejected, Aborted):
            program = None
        except RecursionError:
            diagnostics.add(_too_deep(state, f))
        if state.per_thread == per_thread:
            break
        per_thread = state.per_thread
    module.diagnostics.extend(diagnostics)
    return None if diagnostics.has_errors else program


def _too_deep(state: State, f: ast.FunctionDef) -> Diagnostic:
    return Diagnostic.of(
        codes.TOO_LARGE,
        f"an expression or a block of {f.name} nests too deeply",
        heading(state, f),
        helps=("split the expression over several assignments",),
    )


def _elaborate(
    state: State, f: ast.FunctionDef, meta: Mapping[str, Any], target: str | None
) -> Program:
    name = target or target_name(state, f)
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
            kernel_level(state, node)
        except Rejected:
            poison_names(state, node)
    check_roles(state, f)
    return Program(
        name=f.name,
        target=name,
        params=tuple(state.params),
        metas=tuple(state.metas),
        guards=tuple(state.guards),
        lets=tuple(state.lets),
        resources=tuple(state.resources.values()),
        roles=tuple(state.roles),
        loc=heading(state, f),
    )


def launch_options(program: Program) -> tuple[int, bool]:
    """(min_blocks, pdl) of a program."""
    found: Sequence[LaunchOptions] = program.find(LaunchOptions)
    return (found[0].min_blocks, found[0].pdl) if found else (1, False)
