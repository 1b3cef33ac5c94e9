"""Whether two neighbouring statements may change places without changing what a program means.

Decided from the effects of primitives and the names that statements touch; in doubt, no.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from cake.ir.nodes import (
    Assign,
    Bracket,
    Call,
    Do,
    Expr,
    For,
    If,
    SetElement,
    Stmt,
    TensorRef,
    TileLoop,
    VarRef,
    View,
    While,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Program, Smem
from cake.ir.types import is_array
from cake.ops.base import Access, SyncEffect, lookup

WAITS = ("cp_async_wait", "tma_store_wait", "wgmma_wait", "tcgen05_wait_ld")
"""Waits for work of the own thread; two of them may come in either order."""

GROUPS = {
    "cp_async_wait": ("cp_async",),
    "cp_async_commit": ("cp_async",),
    "tma_store_wait": ("tma_store", "tma_reduce_add", "bulk_store", "bulk_reduce_add"),
    "tma_store_commit": ("tma_store", "tma_reduce_add", "bulk_store", "bulk_reduce_add"),
    "wgmma_wait": ("wgmma",),
}
"""What a commit or wait is about: memory and registers that these touch, and nothing else."""


@dataclass(slots=True)
class Touched:
    """What a statement reads and writes, by name, and how it synchronises.

    ``memory`` are the tensors and buffers among the names, ``ordinary`` those that are not accessed
    by the async proxy. ``arrays``: fragments or register arrays are touched.
    """

    reads: set[str] = field(default_factory=set)
    writes: set[str] = field(default_factory=set)
    memory: set[str] = field(default_factory=set)
    ordinary: set[str] = field(default_factory=set)
    arrays: bool = False
    syncs: set[SyncEffect] = field(default_factory=set)

    def conflicts(self, other: Touched) -> bool:
        """Whether one writes what the other touches."""
        return bool(
            self.writes & (other.reads | other.writes) or other.writes & (self.reads | self.writes)
        )


def commutes(program: Program, a: Stmt, b: Stmt) -> str | None:
    """Why ``a`` and ``b`` may change places, None if that is not certain."""
    if op_of(a) in WAITS and op_of(b) in WAITS:
        return "two waits for different work of the own thread"
    one, two = touched(program, a), touched(program, b)
    if one.conflicts(two):
        return None
    for group, other in ((a, b), (b, a)):
        if op_of(group) in GROUPS and _apart(program, op_of(group), other):
            return "the group holds nothing that the statement touches"
    if one.syncs and two.syncs:
        return None
    if not one.syncs and not two.syncs:
        return "the two statements touch different registers and memory, and order nothing"
    ordering, passed = (one, two) if one.syncs else (two, one)
    if passed.memory - _constant(program) or (passed.arrays and _of_registers(ordering)):
        return None
    return "what orders accesses passes a statement on registers and constant data only"


def op_of(stmt: Stmt) -> str:
    """The primitive that a statement executes for its effect, the empty text for others."""
    return stmt.call.op if isinstance(stmt, Do) else ""


def _apart(program: Program, group: str, passed: Stmt) -> bool:
    """Whether a statement touches nothing that the copies or products of a mechanism touch."""
    ops = GROUPS[group]
    held: set[str] = set()
    for role in program.roles:
        for stmt in walk_stmts(role.body):
            if op_of(stmt) in ops:
                found = touched(program, stmt)
                held |= found.reads | found.writes
    own = touched(program, passed)
    nested = isinstance(passed, For | TileLoop | While | If | Bracket)
    same = any(op_of(s) in (*ops, *GROUPS) for s in walk_stmts((passed,)))
    # Barriers and arrivals tell other threads that the group is complete.
    tells = any(s.action in ("arrive", "barrier", "fence") for s in own.syncs)
    return not (nested or same or tells or held & (own.reads | own.writes))


def _of_registers(ordering: Touched) -> bool:
    """Whether a mechanism whose completion is about registers too is waited for."""
    return any(s.what in ("wgmma", "tcgen05") for s in ordering.syncs)


def touched(program: Program, stmt: Stmt) -> Touched:
    """Everything that a statement and what is nested in it touch."""
    found = Touched()
    for inner in walk_stmts((stmt,)):
        _written(inner, found)
        for e in walk_exprs(inner):
            if isinstance(e, VarRef):
                found.reads.add(e.name)
                found.arrays |= is_array(e.type)
            elif isinstance(e, Call):
                _called(program, e, found)
    return found


def _written(stmt: Stmt, found: Touched) -> None:
    if isinstance(stmt, Assign):
        found.writes.update(stmt.targets)
        found.arrays |= is_array(stmt.value.type)
    elif isinstance(stmt, SetElement):
        found.writes.update(e.name for e in _tree(stmt.array) if isinstance(e, VarRef))
    elif isinstance(stmt, For):
        found.writes.add(stmt.var)
    elif isinstance(stmt, TileLoop | While):
        # Rounds of such a loop may depend on anything.
        found.syncs.add(SyncEffect("barrier", "loop"))
    elif isinstance(stmt, Bracket):
        found.syncs.add(SyncEffect("wait", "pipeline"))


def _called(program: Program, call: Call, found: Touched) -> None:
    primitive = lookup(call.op)
    assert primitive is not None
    for effect in primitive.effects(call):
        if isinstance(effect, SyncEffect):
            found.syncs.add(effect)
            continue
        operand = call.args[effect.operand]
        names = {_memory(program, e) for e in _tree(operand)} - {""}
        found.memory |= names
        found.ordinary |= names if effect.proxy == "generic" else set()
        target = found.reads if effect.action == "read" else found.writes
        target |= names
        if effect.space == "regs":
            target |= {e.name for e in _tree(operand) if isinstance(e, VarRef)}


def _tree(e: Expr | None) -> Iterator[Expr]:
    if e is not None:
        yield e
        yield from walk_exprs(e)


def _memory(program: Program, e: Expr) -> str:
    """The tensor, buffer or pool of a place; buffers of one pool may share bytes."""
    if isinstance(e, TensorRef):
        return e.tensor
    if not isinstance(e, View):
        return ""
    decl = program.resource(e.base)
    return decl.pool if isinstance(decl, Smem) and decl.pool else e.base


def _constant(program: Program) -> set[str]:
    """Tensors that nobody writes in the program, so that no order of reading them matters."""
    names = {t.name for t in program.tensors}
    for role in program.roles:
        for call in (e for s in walk_stmts(role.body) for e in walk_exprs(s)):
            if not isinstance(call, Call):
                continue
            primitive = lookup(call.op)
            assert primitive is not None
            for effect in primitive.effects(call):
                if isinstance(effect, Access) and effect.action != "read":
                    names -= {_memory(program, e) for e in _tree(call.args[effect.operand])}
    return names
