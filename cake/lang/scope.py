"""Names and what they mean during elaboration."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

from cake.diag import Diagnostic, Diagnostics, Fix, Related, Span
from cake.ir.dtypes import BOOL, DTYPES, F32, I32, I64, DType
from cake.ir.nodes import Assign, Call, Const, Expr, RoleBody, Static, Stmt
from cake.ir.program import (
    Guard,
    Meta,
    ResourceDecl,
    ScalarParam,
    TensorParam,
)
from cake.ir.types import Scalar, StaticType, Type
from cake.lang import codes
from cake.targets.model import Target

MAX_STATEMENTS = 50_000


class Rejected(Exception):
    """Elaboration of the current statement stopped; the diagnostic is already recorded."""


class Aborted(Exception):
    """Elaboration of the whole schedule stopped; the diagnostic is already recorded."""


@dataclass(frozen=True, slots=True)
class Variable:
    """A run-time variable; ``ir_name`` is its name in the program."""

    ir_name: str
    type: Type
    declared: tuple[int, int]
    """Line and column of the declaring assignment, to force it per thread in a second round."""


@dataclass(frozen=True, slots=True)
class InlineFunction:
    """An ``@cake.inline`` helper, expanded at its calls."""

    node: ast.FunctionDef


class Poison:
    """What a name means after its definition was rejected: uses are silently rejected too."""


Meaning = Expr | ResourceDecl | TensorParam | ScalarParam | Variable | InlineFunction | Poison


BUILTINS: dict[str, Any] = {
    **DTYPES,
    "inf": float("inf"),
    "nan": float("nan"),
}


def place(file: str, line: int, col: int, end_col: int) -> Span:
    """A span within one line."""
    return Span(file=file, line=line, col=col, end_line=line, end_col=end_col)


@dataclass(slots=True)
class Source:
    """The text of a schedule file."""

    file: str
    text: str
    lines: list[str] = field(default_factory=list)
    spans: dict[ast.AST, Span] = field(default_factory=dict)
    """Places found so far: expanded loops and helpers ask for the same nodes again and again."""

    def __post_init__(self) -> None:
        self.lines = self.text.split("\n")

    def span(self, node: ast.AST) -> Span:
        """Place of a syntax node; columns in characters, although ``ast`` counts bytes."""
        found = self.spans.get(node)
        if found is None:
            found = self.spans[node] = self._span(node)
        return found

    def _span(self, node: ast.AST) -> Span:
        line = getattr(node, "lineno", 1)
        end_line = getattr(node, "end_lineno", line) or line
        col = self._column(line, getattr(node, "col_offset", 0))
        end_col = self._column(end_line, getattr(node, "end_col_offset", col) or col)
        return Span(
            file=self.file,
            line=line,
            col=col + 1,
            end_line=end_line,
            end_col=end_col + 1,
        )

    def _column(self, line: int, offset: int) -> int:
        if not 1 <= line <= len(self.lines):
            return offset
        text = self.lines[line - 1]
        return offset if text.isascii() else len(text.encode()[:offset].decode(errors="ignore"))


@dataclass(slots=True)
class State:
    """Everything that elaboration of one schedule accumulates."""

    source: Source
    target: Target
    diagnostics: Diagnostics
    scopes: list[dict[str, Meaning]]
    evaluate: Callable[[State, ast.expr], Expr]
    """Elaborates an expression; held here so that mutually recursive modules need no cycle."""
    execute: Callable[[State, Sequence[ast.stmt]], None]
    """Elaborates a block into ``block``."""
    used: set[str] = field(default_factory=set)
    suffixes: dict[str, int] = field(default_factory=dict)
    """Last suffix tried for a name, so that long expansions do not search from the start."""
    params: list[TensorParam | ScalarParam] = field(default_factory=list)
    metas: list[Meta] = field(default_factory=list)
    guards: list[Guard] = field(default_factory=list)
    lets: list[Assign] = field(default_factory=list)
    resources: dict[str, ResourceDecl] = field(default_factory=dict)
    roles: list[RoleBody] = field(default_factory=list)
    block: list[Stmt] = field(default_factory=list)
    unit_threads: int = 0
    """Threads of the unit whose body is being elaborated; 0 at kernel level."""
    varying_depth: int = 0
    """Enclosing control flow that may differ between threads of the unit."""
    per_thread: set[tuple[int, int]] = field(default_factory=set)
    """Declarations found to hold per-thread values; grows until nothing changes."""
    single: list[set[str]] = field(default_factory=list)
    """Names assigned exactly once in the function or role body at hand (innermost last)."""
    emitted: int = 0
    inline_depth: int = 0

    # -- diagnostics ---------------------------------------------------------------------------

    def reject(
        self,
        code: str,
        message: str,
        at: ast.AST | Span,
        *,
        label: str | None = None,
        helps: Sequence[str] = (),
        facts: Mapping[str, Any] | None = None,
        related: Sequence[Related] = (),
        fix: Fix | None = None,
    ) -> NoReturn:
        """Record a diagnostic and give up the current statement."""
        span = at if isinstance(at, Span) else self.source.span(at)
        self.diagnostics.add(
            Diagnostic.of(
                code,
                message,
                span,
                label=label,
                helps=tuple(helps),
                facts=dict(facts or {}),
                related=tuple(related),
                fix=fix,
            )
        )
        raise Rejected

    # -- recursion -----------------------------------------------------------------------------

    def expression(self, node: ast.expr) -> Expr:
        """Elaborate a sub-expression."""
        return self.evaluate(self, node)

    def static_value(self, node: ast.expr, what: str = "this value") -> object:
        """The Python value of an expression that must be known at compile time."""
        e = self.evaluate(self, node)
        if isinstance(e, Static):
            return e.value
        self.reject(codes.NOT_STATIC, f"{what} must be known at compile time, got {e.type}", node)

    # -- names ---------------------------------------------------------------------------------

    def find(self, name: str) -> Meaning | None:
        """What a name means here, innermost scope first."""
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        if name in BUILTINS:
            return static(BUILTINS[name], place(self.source.file, 1, 1, 2))
        return None

    def bind(self, name: str, meaning: Meaning) -> None:
        """Give a name its meaning in the innermost scope."""
        self.scopes[-1][name] = meaning

    def fresh(self, name: str) -> str:
        """``name`` if unused in this program, else ``name_1``, ``name_2``, ..."""
        candidate, k = name, self.suffixes.get(name, 0)
        while candidate in self.used:
            k += 1
            candidate = f"{name}_{k}"
        self.suffixes[name] = k
        self.used.add(candidate)
        return candidate

    def emit(self, statement: Stmt) -> None:
        """Append a statement to the block at hand."""
        self.emitted += 1
        if self.emitted > MAX_STATEMENTS:
            try:
                self.reject(
                    codes.TOO_LARGE,
                    f"the schedule expands to more than {MAX_STATEMENTS} statements",
                    statement.loc,
                    helps=("use range(n, unroll=True) or a run-time loop, not static_range",),
                    facts={"limit": MAX_STATEMENTS},
                )
            except Rejected:
                raise Aborted from None
        self.block.append(statement)


def static(value: Any, loc: Span) -> Static:
    """A compile-time value as an expression."""
    return Static(value=value, type=StaticType(), loc=loc)


def constant(value: int | float | bool, dtype: DType, loc: Span) -> Const:
    """A typed number."""
    return Const(value=value, type=Scalar(dtype), loc=loc)


def default_dtype(value: object) -> DType | None:
    """The element type that a plain number takes when nothing else decides."""
    if isinstance(value, bool):
        return BOOL
    if isinstance(value, int):
        return I32 if -(2**31) <= value < 2**31 else I64
    return F32 if isinstance(value, float) else None


def widen(e: Expr, dtype: DType) -> Expr:
    """i32 to i64, the one implicit conversion between typed values."""
    source = e.type
    assert isinstance(source, Scalar)
    from cake.ops.base import lookup

    primitive = lookup("cast")
    assert primitive is not None
    args: list[Expr | None] = [None] * len(primitive.params)
    args[0] = e
    args[1] = static(dtype, e.loc)
    return Call(op="cast", args=tuple(args), type=Scalar(dtype, source.varying), loc=e.loc)
