"""Which statements belong to a mutated one: a finding at any of them points at the slip.

Not everything that touches the same buffer does. A partner is what a statement synchronises with,
or the other access of the pair that it is one of, or whose order it keeps:

* a step of a ring: the steps of that ring, the accesses to its buffers next before and after in the
  same role, and those of the other role;
* a fence, barrier, wait or commit: statements on the same barrier, its declaration, those of the
  same mechanism in the same role, the accesses next before and after it (cyclically), and where
  threads of several roles meet, what the others do to the same buffers;
* an access: accesses of the opposite direction to the same memory or registers, the waits and
  commits of its mechanism in the same role, the steps of its ring;
* a loop or condition: what is inside, and the partners of the steps inside;
* a declaration: the statements that name it; of a role, those of its statements that synchronise
  or touch memory: one unit more does all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from benchmarks.verifier.commute import Touched, touched
from benchmarks.verifier.edits import sites
from benchmarks.verifier.operators import BARRIERS, CLUSTER, FENCES, RING, SEPARATING, op_of
from cake.ir.nodes import (
    Assign,
    Bracket,
    DimRef,
    For,
    If,
    Node,
    ResourceRef,
    RoleBody,
    Stmt,
    TensorRef,
    TileLoop,
    VarRef,
    View,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import (
    Barrier,
    Guard,
    NamedBarrier,
    Pipeline,
    Program,
    ResourceDecl,
    Role,
)
from cake.ir.types import is_array

FAMILIES = ("wgmma", "cp_async", "tma_store", "bulk_store", "tcgen05", "tmem", "cluster", "pdl")
REGISTERS = ("wgmma", "tcgen05")
MEETING = (*BARRIERS, *CLUSTER)


@dataclass(frozen=True, slots=True, eq=False)
class Step:
    """A statement of a role without what is nested in it: names it uses, and its direction."""

    role: RoleBody
    stmt: Stmt
    own: Touched
    names: frozenset[str]

    @property
    def rings(self) -> frozenset[str]:
        """The ring that the statement steps."""
        if isinstance(self.stmt, Bracket):
            return frozenset({self.stmt.pipeline})
        return self.names if op_of(self.stmt) in RING else frozenset()


def partner_lines(program: Program, lines: frozenset[int]) -> frozenset[int]:
    """Lines of the mutated statements and declarations, and of their partners."""
    steps = _steps(program)
    declared: tuple[Node, ...] = (*program.guards, *program.resources)
    mutated = [n for n in (*declared, *(s.stmt for s in steps)) if n.loc.line in lines]
    found = set(lines)
    for node in mutated:
        found |= {n.loc.line for n in _partners(program, steps, node)}
    return frozenset(found)


def _steps(program: Program) -> list[Step]:
    bodies = {role.role: role for role in program.roles}
    return [_step(program, bodies[site.role], site.stmt) for site in sites(program)]


def _step(program: Program, role: RoleBody, stmt: Stmt) -> Step:
    names: set[str] = set()
    for e in walk_exprs(stmt):
        if isinstance(e, ResourceRef | VarRef) and (
            isinstance(e, ResourceRef) or is_array(e.type) or e.name == role.unit
        ):
            names.add(e.name)
        elif isinstance(e, View):
            names.add(e.base)
        elif isinstance(e, TensorRef):
            names.add(e.tensor)
    if isinstance(stmt, Assign) and is_array(stmt.value.type):
        names.update(stmt.targets)
    nested = isinstance(stmt, For | TileLoop | While | If | Bracket)
    own = Touched() if nested else touched(program, stmt)
    return Step(role, stmt, own, frozenset(names))


def _partners(program: Program, steps: list[Step], node: Node) -> Iterator[Node]:
    if isinstance(node, Guard):
        dims = {e.name for e in (node.cond, *walk_exprs(node.cond)) if isinstance(e, DimRef)}
        tensors = {t.name for t in program.tensors if dims & set(t.shape)}
        yield from (s.stmt for s in steps if s.names & tensors)
    elif isinstance(node, Role):
        mine = [s for s in steps if s.role.role == node.name]
        yield from (s.stmt for s in mine if s.own.syncs or s.rings or s.own.memory)
    elif isinstance(node, ResourceDecl):
        names = {node.name}
        for ring in program.find(Pipeline):
            if ring.name == node.name or node.name in ring.buffers:
                names |= {ring.name, *ring.buffers}
        yield from (s.stmt for s in steps if names & (s.names | s.rings))
    elif isinstance(node, For | TileLoop | While | If | Bracket):
        inside = set(walk_stmts((node,)))
        yield from inside
        for step in [s for s in steps if s.stmt in inside and (s.rings or s.own.syncs)]:
            yield from _of_step(program, steps, step)
    elif isinstance(node, Stmt):
        yield from _of_step(program, steps, next(s for s in steps if s.stmt is node))


def _of_step(program: Program, steps: list[Step], step: Step) -> Iterator[Node]:
    yield from (r for r in program.resources if r.name in step.names and _is_barrier(r))
    if step.rings:
        yield from _of_ring(program, steps, step)
    elif op_of(step.stmt) in SEPARATING or (step.own.syncs and not step.own.memory):
        yield from _of_order(steps, step)
    else:
        yield from _of_access(program, steps, step)


def _is_barrier(decl: ResourceDecl) -> bool:
    return isinstance(decl, Barrier | NamedBarrier)


def _of_ring(program: Program, steps: list[Step], step: Step) -> Iterator[Stmt]:
    for ring in program.find(Pipeline):
        if ring.name in step.rings:
            yield from (s.stmt for s in steps if ring.name in s.rings)
            uses = [s for s in steps if s.names & set(ring.buffers)]
            yield from (s.stmt for s in uses if s.role is not step.role)
            yield from _next(steps, step, set(ring.buffers))


def _of_order(steps: list[Step], step: Step) -> Iterator[Stmt]:
    op = op_of(step.stmt)
    family = next((f for f in FAMILIES if op.startswith(f)), None)
    for other in steps:
        same_barrier = op == op_of(other.stmt) and op in MEETING
        named = not step.own.memory and step.names & other.names and other.own.syncs
        mechanism = family and op_of(other.stmt).startswith(family) and other.role is step.role
        if same_barrier or named or mechanism:
            yield other.stmt
    near = list(_next(steps, step, _ordered(steps, step)))
    yield from near
    if op not in MEETING and not op.startswith("named"):
        return
    touching = [s for s in steps if s.stmt in near]
    memory = set[str]().union(*(s.own.memory for s in touching))
    yield from (s.stmt for s in steps if s.role is not step.role and s.own.memory & memory)


def _ordered(steps: list[Step], step: Step) -> set[str]:
    """The memory and registers whose accesses ``step`` may keep in order: somebody writes them.

    A fence is about memory that its role accesses without the async proxy; waits for products are
    about registers too.
    """
    op = op_of(step.stmt)
    mine = [s for s in steps if s.role is step.role]
    if op in FENCES:
        names = set[str]().union(*(s.own.ordinary for s in mine))
    elif op.startswith(REGISTERS):
        names = set[str]().union(*(s.names | s.own.memory for s in mine))
    else:
        names = set[str]().union(*(s.own.memory for s in mine))
    return names & set[str]().union(*(s.own.writes for s in steps))


def _of_access(program: Program, steps: list[Step], step: Step) -> Iterator[Stmt]:
    own = step.own
    for other in steps:
        if own.conflicts(other.own) and (own.memory & other.own.memory or own.arrays):
            yield other.stmt
        family = next((f for f in FAMILIES if op_of(step.stmt).startswith(f)), None)
        waits = op_of(other.stmt) in SEPARATING or "commit" in op_of(other.stmt)
        if family and waits and op_of(other.stmt).startswith(family) and other.role is step.role:
            yield other.stmt
    for ring in program.find(Pipeline):
        if step.names & set(ring.buffers):
            yield from (s.stmt for s in steps if ring.name in s.rings)


def _next(steps: list[Step], step: Step, names: set[str]) -> Iterator[Stmt]:
    """For each of some buffers and register tiles, the access next before and after ``step``."""
    mine = [s for s in steps if s.role is step.role]
    at = mine.index(step)
    after = mine[at + 1 :] + mine[:at]
    for direction in (after, after[::-1]):
        seen: set[str] = set()
        for other in direction:
            new = ((other.own.memory | other.names) & names) - seen
            if new:
                seen |= new
                yield other.stmt
