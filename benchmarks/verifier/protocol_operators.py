"""Mutation operators over protocols: phases, slots, scopes, and who takes which step how often."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import combinations

from benchmarks.verifier.commute import commutes
from benchmarks.verifier.edits import (
    Statements,
    number,
    shifted,
    sites,
    with_expr,
    with_resource,
    with_statements,
)
from benchmarks.verifier.operators import (
    BARRIERS,
    CLUSTER,
    COMMITS,
    DRAINS,
    FENCES,
    MBARRIER,
    NAMED,
    RING,
    Edit,
    Operator,
    duplicating,
    executing,
    moving,
    op_of,
)
from cake.ir.dtypes import BOOL, I32
from cake.ir.nodes import (
    Bracket,
    Call,
    Const,
    Do,
    Expr,
    For,
    If,
    ResourceRef,
    RoleBody,
    Static,
    Stmt,
    VarRef,
    child_blocks,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Pipeline, Program, Role
from cake.ir.types import Scalar, Slot

STEPS = RING + NAMED + MBARRIER + BARRIERS + CLUSTER
ORDERING = FENCES + DRAINS + COMMITS + BARRIERS


def one(program: Program, old: Stmt, *new: Stmt) -> Edit:
    """The edit that replaces one statement."""
    return Edit(nodes=(old,), program=with_statements(program, {old: new}))


def leave_block(program: Program) -> Iterator[Edit]:
    """What orders accesses in a loop or branch stands before it, or after it, instead."""
    for site in sites(program):
        for block in child_blocks(site.stmt):
            for at in {0, len(block) - 1} if len(block) > 1 else ():
                inner = block[at]
                if not isinstance(inner, Do) or op_of(inner) not in ORDERING:
                    continue
                kept = with_statements(program, {inner: ()})
                outer = next(s.stmt for s in sites(kept) if s.stmt.loc == site.stmt.loc)
                moved: Statements = (outer, inner) if at else (inner, outer)
                yield Edit(nodes=(inner,), program=with_statements(kept, {outer: moved}))


def both(ops: tuple[str, ...], by: int) -> Callable[[Program], Iterator[Edit]]:
    """A statement is moved over ``by`` neighbours, down or up."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, ops):
            for step in (by, -by):
                to = site.index + step
                if isinstance(site.stmt, Do) and 0 <= to < len(site.block):
                    passed = site.block[min(site.index, to) : max(site.index, to) + 1]
                    rest = [s for s in passed if s is not site.stmt]
                    order = (*rest, site.stmt) if step > 0 else (site.stmt, *rest)
                    edits: dict[Stmt, Statements] = dict.fromkeys(passed, ())
                    edits[passed[0]] = order
                    reasons = [commutes(program, site.stmt, s) for s in rest]
                    yield Edit(
                        nodes=passed,
                        program=with_statements(program, edits),
                        equivalent=reasons[0] if all(reasons) else None,
                    )

    return apply


def other_slot(program: Program) -> Iterator[Edit]:
    """A step or an access of a ring names another slot variable of the same ring."""
    for role in program.roles:
        slots = {
            (e.name, e.type)
            for s in walk_stmts(role.body)
            for e in walk_exprs(s)
            if isinstance(e, VarRef) and isinstance(e.type, Slot)
        }
        for stmt in walk_stmts(role.body):
            used = {e.name: e for e in walk_exprs(stmt) if isinstance(e, VarRef)}
            for ref in [e for e in used.values() if isinstance(e.type, Slot)]:
                for name, kind in sorted(slots, key=str):
                    if kind == ref.type and name != ref.name and isinstance(stmt, Do):
                        new = with_expr(stmt, ref, replace(ref, name=name))
                        yield one(program, stmt, new)


def other_ring(program: Program) -> Iterator[Edit]:
    """A step is taken of another ring between the same roles."""
    rings = program.find(Pipeline)
    for site in sites(program):
        stmt = site.stmt
        refs = [e for e in walk_exprs(stmt) if isinstance(e, ResourceRef)]
        for ring, other in ((a, b) for a in rings for b in rings if a is not b):
            if (ring.producer, ring.consumer) != (other.producer, other.consumer):
                continue
            if isinstance(stmt, Bracket) and stmt.pipeline == ring.name:
                yield one(program, stmt, replace(stmt, pipeline=other.name))
            for ref in refs:
                if ref.name == ring.name:
                    yield one(program, stmt, with_expr(stmt, ref, replace(ref, name=other.name)))


def swap_bounds(program: Program) -> Iterator[Edit]:
    """Loops of two roles that step rings or barriers exchange their bounds."""
    loops = [(role.role, loop) for role in program.roles for loop in _stepping(role)]
    for (first, a), (second, b) in combinations(loops, 2):
        if first == second:
            continue
        edits: dict[Stmt, Statements] = {
            a: (replace(a, start=b.start, stop=b.stop),),
            b: (replace(b, start=a.start, stop=a.stop),),
        }
        yield Edit(nodes=(a, b), program=with_statements(program, edits))


def _stepping(role: RoleBody) -> Iterator[For]:
    for stmt in walk_stmts(role.body):
        if isinstance(stmt, For) and steps(stmt):
            yield stmt


def steps(loop: Stmt) -> bool:
    """Whether a ring or a barrier is stepped inside a statement."""
    return any(isinstance(s, Bracket) or op_of(s) in STEPS for s in walk_stmts((loop,)))


def protocol_bound(which: str, by: int) -> Callable[[Program], Iterator[Edit]]:
    """A loop that steps rings or barriers begins or ends one round later or earlier."""

    def apply(program: Program) -> Iterator[Edit]:
        for role in program.roles:
            for loop in _stepping(role):
                step = loop.step.value if isinstance(loop.step, Const | Static) else 1
                bound: Expr = getattr(loop, which)
                yield one(program, loop, with_expr(loop, bound, shifted(bound, by * int(step))))

    return apply


def some_rounds(program: Program) -> Iterator[Edit]:
    """What synchronises is left out in the first round of its loop."""
    for role in program.roles:
        for loop in walk_stmts(role.body):
            for stmt in loop.body if isinstance(loop, For) else ():
                if _synchronises(stmt):
                    assert isinstance(loop, For)
                    yield one(program, stmt, _under(stmt, "ne", loop.var, loop.start))


def first_unit(program: Program) -> Iterator[Edit]:
    """Only the first unit of a role synchronises."""
    for role in program.roles:
        decl = program.resource(role.role)
        if role.unit is None or not isinstance(decl, Role) or decl.units == 1:
            continue
        for stmt in walk_stmts(role.body):
            if _synchronises(stmt):
                zero = Const(loc=stmt.loc, type=Scalar(I32), value=0)
                yield one(program, stmt, _under(stmt, "eq", role.unit, zero))


def _synchronises(stmt: Stmt) -> bool:
    if isinstance(stmt, Bracket):
        return True
    return isinstance(stmt, Do) and op_of(stmt) in (*STEPS, *ORDERING)


def _under(stmt: Stmt, op: str, name: str, value: Expr) -> If:
    var = VarRef(loc=stmt.loc, type=Scalar(I32), name=name)
    cond = Call(loc=stmt.loc, type=Scalar(BOOL), op=op, args=(var, value))
    return If(loc=stmt.loc, cond=cond, then=(stmt,), orelse=())


def flip_parity(program: Program) -> Iterator[Edit]:
    """A wait asks for the other phase."""
    for site in executing(program, ("barrier_wait",)):
        call = site.stmt.call if isinstance(site.stmt, Do) else None
        parity = call.args[2] if call is not None else None
        if parity is not None:
            other = Call(
                loc=parity.loc, type=parity.type, op="sub", args=(_like(parity, 1), parity)
            )
            yield one(program, site.stmt, with_expr(site.stmt, parity, other))


def _like(e: Expr, value: int) -> Expr:
    return Const(loc=e.loc, type=e.type, value=value)


def announced(times: int, over: int) -> Callable[[Program], Iterator[Edit]]:
    """Other bytes are announced than come."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in executing(program, ("expect_tx",)):
            size = site.stmt.call.args[2] if isinstance(site.stmt, Do) else None
            if isinstance(size, Const | Static):
                new = number(size, int(size.value) * times // over)
                yield one(program, site.stmt, with_expr(site.stmt, size, new))

    return apply


NARROWER = {"cta_sync": "role_sync", "role_sync": "unit_sync"}
WIDER = {"unit_sync": "role_sync", "role_sync": "cta_sync"}


def scope(other: dict[str, str]) -> Callable[[Program], Iterator[Edit]]:
    """A barrier joins the next smaller, or next larger, group of threads."""

    def apply(program: Program) -> Iterator[Edit]:
        single = {r.name for r in program.find(Role) if r.units == 1}
        alone = len(program.roles) == 1
        for site in executing(program, tuple(other)):
            assert isinstance(site.stmt, Do)
            call = site.stmt.call
            # One unit is the whole role, one role the whole CTA: then both say the same.
            same = site.role in single if "unit_sync" in (call.op, other[call.op]) else alone
            if not same:
                new = replace(site.stmt, call=replace(call, op=other[call.op]))
                yield one(program, site.stmt, new)

    return apply


def twice(program: Program) -> Iterator[Edit]:
    """A whole fill or use of a ring is done twice."""
    for site in sites(program):
        if isinstance(site.stmt, Bracket):
            yield one(program, site.stmt, site.stmt, site.stmt)


def leave_ring(program: Program) -> Iterator[Edit]:
    """A buffer no longer belongs to its ring."""
    for ring in program.find(Pipeline):
        for name in ring.buffers if len(ring.buffers) > 1 else ():
            fewer = replace(ring, buffers=tuple(b for b in ring.buffers if b != name))
            yield Edit(nodes=(ring,), program=with_resource(program, ring, fewer))


def exchange_roles(program: Program) -> Iterator[Edit]:
    """Producer and consumer of a ring are exchanged in its declaration."""
    for ring in program.find(Pipeline):
        new = replace(ring, producer=ring.consumer, consumer=ring.producer)
        yield Edit(nodes=(ring,), program=with_resource(program, ring, new))


_MEETING = "a barrier that more threads meet at orders more; nothing else changes"

PROTOCOL_OPERATORS: tuple[Operator, ...] = (
    Operator(name="move out of block", apply=leave_block),
    Operator(name="other slot variable", apply=other_slot),
    Operator(name="other ring", apply=other_ring),
    Operator(name="swap roles' loop bounds", apply=swap_bounds),
    Operator(name="stepping loop ends later", apply=protocol_bound("stop", 1)),
    Operator(name="stepping loop ends earlier", apply=protocol_bound("stop", -1)),
    Operator(name="stepping loop begins later", apply=protocol_bound("start", 1)),
    Operator(name="not in the first round", apply=some_rounds),
    Operator(name="only in the first unit", apply=first_unit),
    Operator(name="fill or use twice", apply=twice),
    Operator(name="arrive twice", apply=duplicating(*NAMED, "arrive")),
    Operator(name="move fence by two", apply=both(FENCES, 2)),
    Operator(name="move barrier by two", apply=both(BARRIERS + CLUSTER, 2)),
    Operator(name="move wait by two", apply=both(DRAINS, 2)),
    Operator(name="move commit by two", apply=both(COMMITS, 2)),
    Operator(name="move wait up", apply=moving(*DRAINS, by=-1)),
    Operator(name="move commit down", apply=moving(*COMMITS, by=1)),
    Operator(name="move ring step down", apply=moving("release", "commit", by=1)),
    Operator(name="move named barrier step", apply=both(NAMED, 1)),
    Operator(name="flip parity", apply=flip_parity),
    Operator(name="announce twice the bytes", apply=announced(2, 1)),
    Operator(name="announce half the bytes", apply=announced(1, 2)),
    Operator(name="narrower barrier", apply=scope(NARROWER)),
    Operator(name="wider barrier", apply=scope(WIDER), only_slack=_MEETING),
    Operator(name="buffer leaves ring", apply=leave_ring),
    Operator(name="exchange producer and consumer", apply=exchange_roles),
)
