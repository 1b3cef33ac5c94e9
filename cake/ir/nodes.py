"""Expressions and statements."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from cake.diag import Span
from cake.ir.types import Type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Node:
    """Anything with a place in the author's source."""

    loc: Span = field(compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Expr(Node):
    """An expression with its type."""

    type: Type


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Const(Expr):
    """A number or truth value of a scalar type."""

    value: int | float | bool


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Static(Expr):
    """A compile-time attribute of a primitive: str, int, float, bool, DType, tuple or None."""

    value: Any


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class VarRef(Expr):
    """A variable: role-local, loop, grid, unit or kernel-level."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DimRef(Expr):
    """A run-time dimension or a scalar kernel parameter."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ResourceRef(Expr):
    """A pipeline, barrier, named barrier, role or tile set, by name."""

    name: str


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class View(Expr):
    """A tile of a shared- or tensor-memory buffer.

    ``stage`` selects the stage (None for an unstaged buffer; a slot or any i32). ``offsets`` has
    one entry for each axis of the buffer; the extents are those of ``type`` (before transposition).
    A scalar element has all extents dropped: ``type.shape == ()``.
    """

    base: str
    stage: Expr | None
    offsets: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TensorRef(Expr):
    """A coordinate of a global tensor, one index for each axis (i32 or i64)."""

    tensor: str
    index: tuple[Expr, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Element(Expr):
    """One element of a register array, or of a fragment opened by ``lanes``."""

    base: Expr
    index: Expr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Call(Expr):
    """A primitive applied to operands, aligned with the primitive's parameters.

    An omitted optional operand is None.
    """

    op: str
    args: tuple[Expr | None, ...]


class Stmt(Node):
    """Base of statements."""

    __slots__ = ()


Block = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Assign(Stmt):
    """``targets = value``; ``declares[i]`` says that target i is new in this block."""

    targets: tuple[str, ...]
    declares: tuple[bool, ...]
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SetElement(Stmt):
    """``array[index] = value`` for register arrays."""

    array: Expr
    index: Expr
    value: Expr


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Do(Stmt):
    """A primitive executed for its effect."""

    call: Call


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class For(Stmt):
    """``for var in range(start, stop, step)``; ``unroll`` asks the back end to unroll fully."""

    var: str
    start: Expr
    stop: Expr
    step: Expr
    unroll: bool
    body: Block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TileLoop(Stmt):
    """``for v0, v1 in tiles``: this CTA's share of a persistent tile set."""

    vars: tuple[str, ...]
    tiles: str
    body: Block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class While(Stmt):
    """``while cond``."""

    cond: Expr
    body: Block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class If(Stmt):
    """``if cond: ... else: ...``."""

    cond: Expr
    then: Block
    orelse: Block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Bracket(Stmt):
    """``with pipe.fill() as slot`` or ``with pipe.use() as slot``."""

    pipeline: str
    side: Literal["fill", "use"]
    slot: str
    body: Block


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RoleBody(Stmt):
    """``with role as unit``: what the warps of a role execute."""

    role: str
    unit: str | None
    body: Block


def _arguments(node: Call) -> tuple[Expr, ...]:
    return tuple([a for a in node.args if a is not None])


def _places(node: View) -> tuple[Expr, ...]:
    return node.offsets if node.stage is None else (node.stage, *node.offsets)


# By type: verifying a program asks for the children of its nodes some ten thousand times.
_CHILDREN: dict[type[Node], Callable[[Any], tuple[Expr, ...]]] = {
    Call: _arguments,
    View: _places,
    TensorRef: lambda node: node.index,
    Element: lambda node: (node.base, node.index),
    Assign: lambda node: (node.value,),
    SetElement: lambda node: (node.array, node.index, node.value),
    Do: lambda node: (node.call,),
    For: lambda node: (node.start, node.stop, node.step),
    While: lambda node: (node.cond,),
    If: lambda node: (node.cond,),
}


def child_exprs(node: Node) -> tuple[Expr, ...]:
    """Direct sub-expressions of an expression or statement, in source order."""
    children = _CHILDREN.get(type(node))
    return () if children is None else children(node)


def child_blocks(stmt: Stmt) -> tuple[Block, ...]:
    """Nested blocks of a statement."""
    if isinstance(stmt, If):
        return (stmt.then, stmt.orelse)
    if isinstance(stmt, For | TileLoop | While | Bracket | RoleBody):
        return (stmt.body,)
    return ()


def walk_exprs(node: Node) -> Iterator[Expr]:
    """All expressions below ``node``, outermost first; does not enter nested blocks."""
    left = [*reversed(child_exprs(node))]
    while left:
        e = left.pop()
        yield e
        children = _CHILDREN.get(type(e))  # most expressions are leaves: no call for them
        if children is not None:
            left += reversed(children(e))


def walk_stmts(block: Block) -> Iterator[Stmt]:
    """All statements of a block, in source order, nested ones after their parent."""
    for s in block:
        yield s
        for b in child_blocks(s):
            yield from walk_stmts(b)


def walk_calls(block: Block) -> Iterator[Call]:
    """All primitive calls of a block in source order."""
    for s in walk_stmts(block):
        for e in walk_exprs(s):
            if isinstance(e, Call):
                yield e
