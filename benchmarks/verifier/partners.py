"""Which statements belong to a mutated one: a finding at any of them points at the slip."""

from __future__ import annotations

from collections.abc import Iterator

from benchmarks.verifier.edits import sites
from benchmarks.verifier.operators import DRAINS, SEPARATING, op_of
from cake.ir.nodes import (
    Assign,
    Bracket,
    DimRef,
    For,
    If,
    Node,
    ResourceRef,
    Stmt,
    TensorRef,
    TileLoop,
    VarRef,
    View,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Guard, Pipeline, Program, ResourceDecl, Role
from cake.ir.types import is_array

FAMILIES = ("wgmma", "cp_async", "tma_store", "tcgen05", "cluster", "named", "pdl")


def partner_lines(program: Program, lines: frozenset[int]) -> frozenset[int]:
    """Lines of the mutated statements and of their partners.

    A partner names the same ring, barrier, buffer, tensor or register tile; for a wait or a commit
    it is any statement of the same mechanism, for a fence, barrier or wait the accesses next before
    and after it, for a loop or a condition whatever is inside.
    """
    mutated = [n for n in _nodes(program) if n.loc.line in lines]
    found = set(lines)
    for node in mutated:
        found |= {n.loc.line for n in _partners(program, node)}
    return frozenset(found)


def _nodes(program: Program) -> Iterator[Node]:
    yield from program.guards
    yield from program.resources
    for site in sites(program):
        yield site.stmt


def _partners(program: Program, node: Node) -> Iterator[Node]:
    inside: list[Node] = [node]
    if isinstance(node, For | TileLoop | While | If | Bracket):
        inside += walk_stmts((node,))
    yield from inside
    names = set[str]().union(*(_names(program, n) for n in inside))
    yield from (n for n in _nodes(program) if names & _names(program, n))
    if isinstance(node, Role):
        yield from (s.stmt for s in sites(program) if s.role == node.name)
    if isinstance(node, Stmt):
        yield from _mechanism(program, node)
        if op_of(node) in SEPARATING:
            yield from _separated(program, node)


def _names(program: Program, node: Node) -> set[str]:
    """Rings, barriers, buffers, tensors and register tiles that a node names."""
    names: set[str] = set()
    if isinstance(node, Guard):
        dims = {e.name for e in (node.cond, *walk_exprs(node.cond)) if isinstance(e, DimRef)}
        # Whatever relies on a guard has the guarded dimension: a copy of the tensor.
        return names.union(t.name for t in program.tensors if dims & set(t.shape))
    if isinstance(node, ResourceDecl):
        names.add(node.name)
    if isinstance(node, Bracket):
        names.add(node.pipeline)
    if isinstance(node, Assign) and is_array(node.value.type):
        names.update(node.targets)
    for e in walk_exprs(node) if isinstance(node, Stmt) else ():
        if isinstance(e, ResourceRef):
            names.add(e.name)
        elif isinstance(e, View):
            names.add(e.base)
        elif isinstance(e, TensorRef):
            names.add(e.tensor)
        elif isinstance(e, VarRef) and is_array(e.type):
            names.add(e.name)
    rings: tuple[Pipeline, ...] = program.find(Pipeline)
    for ring in rings:
        if ring.name in names or names & set(ring.buffers):
            names |= {ring.name, *ring.buffers}
    return names


def _mechanism(program: Program, stmt: Stmt) -> Iterator[Node]:
    family = next((f for f in FAMILIES if op_of(stmt).startswith(f)), None)
    if family is not None:
        yield from (s.stmt for s in sites(program) if op_of(s.stmt).startswith(family))


def _separated(program: Program, stmt: Stmt) -> Iterator[Node]:
    """The access of each buffer or tensor next before and next after ``stmt``, cyclically."""
    role = next(s.role for s in sites(program) if s.stmt is stmt)
    order = [s.stmt for s in sites(program) if s.role == role]
    at = order.index(stmt)
    after = order[at + 1 :] + order[:at]
    for direction in (after, after[::-1]):
        seen: set[str] = set()
        for other in direction:
            touched = {e.base for e in walk_exprs(other) if isinstance(e, View)}
            if touched - seen or (op_of(other) in DRAINS and op_of(other) not in seen):
                seen |= touched | {op_of(other)}
                yield other
