"""Rewriting of programs: replace one statement, expression or declaration by identity."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any

from cake.ir.nodes import Block, Call, Const, Do, Expr, Node, Static, Stmt, child_blocks
from cake.ir.program import Program, ResourceDecl
from cake.ir.types import StaticType

Statements = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Site:
    """A statement with its role and its neighbours: ``block[index]`` is ``stmt``."""

    role: str
    block: Block
    index: int
    stmt: Stmt

    @property
    def following(self) -> Stmt | None:
        """The next statement of the block."""
        return self.block[self.index + 1] if self.index + 1 < len(self.block) else None


def sites(program: Program) -> Iterator[Site]:
    """All statements of all roles in source order."""
    for role in program.roles:
        yield from _sites(role.role, role.body)


def _sites(role: str, block: Block) -> Iterator[Site]:
    for index, stmt in enumerate(block):
        yield Site(role=role, block=block, index=index, stmt=stmt)
        for inner in child_blocks(stmt):
            yield from _sites(role, inner)


def effect(stmt: Stmt) -> Call | None:
    """The call of a statement that is executed for its effect, None for other statements."""
    return stmt.call if isinstance(stmt, Do) else None


def with_statements(program: Program, edits: Mapping[Stmt, Statements]) -> Program:
    """``program`` with each statement that is a key of ``edits`` replaced by others."""
    roles = tuple(replace(r, body=_block(r.body, edits)) for r in program.roles)
    return replace(program, roles=roles)


def _block(block: Block, edits: Mapping[Stmt, Statements]) -> Block:
    made: list[Stmt] = []
    for stmt in block:
        made.extend(edits[stmt] if stmt in edits else (_nested(stmt, edits),))
    return tuple(made)


def _nested(stmt: Stmt, edits: Mapping[Stmt, Statements]) -> Stmt:
    changed: dict[str, Any] = {
        name: _block(getattr(stmt, name), edits)
        for name in ("then", "orelse", "body")
        if hasattr(stmt, name)
    }
    return replace(stmt, **changed) if changed else stmt


def with_expr(stmt: Stmt, old: Expr, new: Expr | None) -> Stmt:
    """``stmt`` with one sub-expression replaced; None drops an optional operand."""
    changed: Stmt = _substitute(stmt, old, new)
    return changed


def _substitute(value: Any, old: Expr, new: Expr | None) -> Any:
    if value is old:
        return new
    if isinstance(value, tuple) and not any(isinstance(v, Stmt) for v in value):
        return tuple(_substitute(v, old, new) for v in value)
    if not isinstance(value, Node):
        return value
    changed = {}
    for f in fields(value):
        before = getattr(value, f.name)
        after = _substitute(before, old, new)
        # A tuple without the expression is rebuilt with the same elements.
        same = after is before or (isinstance(before, tuple) and _same(before, after))
        if not same:
            changed[f.name] = after
    return replace(value, **changed) if changed else value


def _same(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    return all(a is b for a, b in zip(before, after, strict=True))


def with_resource(program: Program, old: ResourceDecl, new: ResourceDecl | None) -> Program:
    """``program`` with a declaration replaced or, for None, removed."""
    kept = ((new if r is old else r) for r in program.resources)
    return replace(program, resources=tuple(r for r in kept if r is not None))


def number(like: Expr, value: int) -> Expr:
    """An integer operand: compile-time where ``like`` is."""
    if isinstance(like, Static):
        return Static(loc=like.loc, type=StaticType(), value=value)
    return Const(loc=like.loc, type=like.type, value=value)


def shifted(e: Expr, by: int) -> Expr:
    """``e + by``, folded for constants."""
    if isinstance(e, Const | Static) and isinstance(e.value, int):
        return number(e, e.value + by)
    one = Const(loc=e.loc, type=e.type, value=abs(by))
    return Call(loc=e.loc, type=e.type, op="add" if by > 0 else "sub", args=(e, one))
