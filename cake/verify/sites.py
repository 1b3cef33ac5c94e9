"""Every primitive call of a program with the control flow around it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from cake.ir.nodes import (
    Block,
    Bracket,
    Call,
    Element,
    Expr,
    For,
    If,
    RoleBody,
    SetElement,
    Stmt,
    TensorRef,
    TileLoop,
    View,
    While,
    child_blocks,
    walk_exprs,
)
from cake.ir.types import Scalar
from cake.ops.base import Access, Effects, Primitive, lookup


@dataclass(frozen=True, slots=True)
class Around:
    """An enclosing statement; ``branch`` tells the blocks of an ``if`` apart."""

    stmt: Stmt
    branch: bool = True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Site:
    """A call, the statement it stands in, and what encloses that, outermost first."""

    role: RoleBody
    stmt: Stmt
    call: Call
    primitive: Primitive
    effects: Effects
    around: tuple[Around, ...]

    @property
    def conditions(self) -> tuple[tuple[Expr, bool], ...]:
        """Enclosing conditions with the truth value that leads here."""
        return conditions(self.around)

    @property
    def loops(self) -> tuple[For | TileLoop | While, ...]:
        return tuple(a.stmt for a in self.around if isinstance(a.stmt, For | TileLoop | While))

    @property
    def brackets(self) -> tuple[Bracket, ...]:
        return tuple(a.stmt for a in self.around if isinstance(a.stmt, Bracket))

    def accesses(self, space: str) -> Iterator[tuple[Access, View | TensorRef]]:
        """Reads and writes of shared ("smem") or global memory."""
        for effect in self.effects:
            if isinstance(effect, Access) and effect.space == space:
                operand = self.call.args[effect.operand]
                if isinstance(operand, View | TensorRef):
                    yield effect, operand


def conditions(around: tuple[Around, ...]) -> tuple[tuple[Expr, bool], ...]:
    """Enclosing conditions with the truth value that leads inside."""
    found: list[tuple[Expr, bool]] = []
    for a in around:
        if isinstance(a.stmt, If):
            found.append((a.stmt.cond, a.branch))
        elif isinstance(a.stmt, While):
            found.append((a.stmt.cond, True))
    return tuple(found)


def sites_of(role: RoleBody) -> tuple[Site, ...]:
    """The calls of a role's body in source order, nested ones before their users."""
    return tuple(_block(role, role.body, ()))


def _block(role: RoleBody, block: Block, around: tuple[Around, ...]) -> Iterator[Site]:
    for s in block:
        for e in reversed(tuple(walk_exprs(s))):
            if isinstance(e, Call) and (primitive := lookup(e.op)) is not None:
                yield Site(
                    role=role,
                    stmt=s,
                    call=e,
                    primitive=primitive,
                    effects=primitive.effects(e),
                    around=around,
                )
        for i, inner in enumerate(child_blocks(s)):
            yield from _block(role, inner, (*around, Around(s, branch=i == 0)))


@dataclass(frozen=True, slots=True)
class Indexed:
    """An element of a register array that is read or written, with what encloses it."""

    array: Expr
    index: Expr
    around: tuple[Around, ...]


def elements_of(role: RoleBody) -> Iterator[Indexed]:
    """The elements of register arrays that a role's body names."""
    yield from _elements(role.body, ())


def _elements(block: Block, around: tuple[Around, ...]) -> Iterator[Indexed]:
    for s in block:
        if isinstance(s, SetElement):
            yield Indexed(s.array, s.index, around)
        for e in walk_exprs(s):
            if isinstance(e, Element):
                yield Indexed(e.base, e.index, around)
        for i, inner in enumerate(child_blocks(s)):
            yield from _elements(inner, (*around, Around(s, branch=i == 0)))


def varying_condition(around: tuple[Around, ...]) -> Stmt | None:
    """The outermost enclosing statement whose control differs between threads of the unit."""
    for a in around:
        if any(isinstance(e.type, Scalar) and e.type.varying for e in controls(a.stmt)):
            return a.stmt
    return None


def controls(s: Stmt) -> tuple[Expr, ...]:
    """The expressions that decide how often the blocks of a statement run."""
    if isinstance(s, If | While):
        return (s.cond,)
    if isinstance(s, For):
        return (s.start, s.stop, s.step)
    return ()


def brackets_of(role: RoleBody) -> Iterator[tuple[Bracket, tuple[Around, ...]]]:
    """The ring brackets of a role with what encloses each."""
    yield from _brackets(role.body, ())


def _brackets(
    block: Block, around: tuple[Around, ...]
) -> Iterator[tuple[Bracket, tuple[Around, ...]]]:
    for s in block:
        if isinstance(s, Bracket):
            yield s, around
        for i, inner in enumerate(child_blocks(s)):
            yield from _brackets(inner, (*around, Around(s, branch=i == 0)))
