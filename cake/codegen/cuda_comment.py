"""What a statement says in Cake IR, on one line: the comments of the emitted code."""

from __future__ import annotations

from cake.ir.nodes import (
    Assign,
    Bracket,
    Const,
    Do,
    Expr,
    For,
    If,
    SetElement,
    Stmt,
    TileLoop,
    While,
)
from cake.ir.program import Program
from cake.lang.printer import print_expr


def summary(program: Program, s: Stmt) -> str:
    """The statement, or its head if it has a body."""

    def text(e: Expr) -> str:
        return print_expr(program, e)

    if isinstance(s, Assign):
        return f"{', '.join(s.targets)} = {text(s.value)}"
    if isinstance(s, SetElement):
        return f"{text(s.array)}[{text(s.index)}] = {text(s.value)}"
    if isinstance(s, Do):
        return text(s.call)
    if isinstance(s, For):
        return f"for {s.var} in range({', '.join(map(text, _bounds(s)))}):"
    if isinstance(s, TileLoop):
        return f"for {', '.join(s.vars)} in {s.tiles}:"
    if isinstance(s, While):
        return f"while {text(s.cond)}:"
    if isinstance(s, If):
        return f"if {text(s.cond)}:"
    assert isinstance(s, Bracket)
    return f"with {s.pipeline}.{s.side}() as {s.slot}:"


def _bounds(s: For) -> list[Expr]:
    """The arguments of ``range`` that say something."""
    if not (isinstance(s.step, Const) and s.step.value == 1):
        return [s.start, s.stop, s.step]
    if isinstance(s.start, Const) and s.start.value == 0:
        return [s.stop]
    return [s.start, s.stop]
