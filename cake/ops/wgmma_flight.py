"""Which accumulators wgmma still owns at a point of a role, seen from the text.

The compiler keeps accumulators in registers between ``wgmma`` and ``wgmma_wait``. It must not move
ordinary reads of them above the wait, nor ordinary writes below the next wgmma, so emission pins
exactly the accumulators that change hands; pinning one that is in flight would make ptxas
serialise the products.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from cake.ir.nodes import (
    Assign,
    Block,
    Call,
    Do,
    Expr,
    For,
    Stmt,
    TileLoop,
    VarRef,
    While,
    child_blocks,
    walk_stmts,
)
from cake.ir.program import Program
from cake.ops.base import static

Path = tuple[tuple[Block, int], ...]
"""Enclosing blocks of a statement with its index in each, outermost first."""


def completed_by(program: Program, role: str, wait: Call) -> tuple[VarRef, ...]:
    """Accumulators in scope at a wait that are in flight before it and not after it."""
    path = _find(program.body_of(role), wait)
    after = {variable(c.args[0]).name for c in _in_flight(path, static(wait, "pending"))}
    visible = _visible(path)
    found: dict[str, VarRef] = {}
    for acc in (variable(c.args[0]) for c in _in_flight(path, None)):
        if acc.name in visible and acc.name not in after:
            found.setdefault(acc.name, acc)
    return tuple(found.values())


def owned_before(program: Program, role: str, call: Call) -> frozenset[str]:
    """Accumulators and register operands that may be in flight when ``call`` starts."""
    names: set[str] = set()
    for c in _in_flight(_find(program.body_of(role), call), None):
        names.update(e.name for e in c.args[:2] if isinstance(e, VarRef))
    return frozenset(names)


def _find(block: Block, call: Call) -> Path:
    for i, s in enumerate(block):
        if isinstance(s, Do) and s.call is call:
            return ((block, i),)
        for inner in child_blocks(s):
            path = _find(inner, call)
            if path:
                return ((block, i), *path)
    return ()


def _visible(path: Path) -> set[str]:
    """Names declared before a statement in its enclosing blocks."""
    names: set[str] = set()
    for block, i in path:
        for s in block[:i]:
            if isinstance(s, Assign):
                names.update(n for n, new in zip(s.targets, s.declares, strict=True) if new)
    return names


def _in_flight(path: Path, pending: int | None) -> list[Call]:
    """The wgmma calls that may be unfinished, on any way back through the loops.

    ``pending`` bounds the number of groups; None does not.
    """
    found: list[Call] = []
    for way in _ways_back(path):
        left = pending
        for call in way:
            if left == 0:
                break
            if call.op == "wgmma_wait":
                limit = static(call, "pending")
                left = limit if left is None else min(left, limit)
            else:
                found.append(call)
                left = None if left is None else left - 1
    return found


def _ways_back(path: Path) -> Iterator[list[Call]]:
    """wgmma and wgmma_wait calls before a statement, latest first, one list a way.

    The first way is the text above; the others go round each enclosing loop once.
    """
    yield [c for block, i in reversed(path) for c in _backwards(block[:i])]
    for depth in range(1, len(path)):
        outer, i = path[depth - 1]
        if isinstance(outer[i], For | While | TileLoop):
            inside = path[depth:]
            before = [c for block, j in reversed(inside) for c in _backwards(block[:j])]
            body, j = inside[0]
            yield [*before, *_backwards(body[j:])]


def _backwards(statements: Sequence[Stmt]) -> list[Call]:
    calls = [
        s.call
        for s in walk_stmts(tuple(statements))
        if isinstance(s, Do) and s.call.op in ("wgmma", "wgmma_wait")
    ]
    return calls[::-1]


def variable(e: Expr | None) -> VarRef:
    """The accumulator operand of a wgmma."""
    assert isinstance(e, VarRef)
    return e
