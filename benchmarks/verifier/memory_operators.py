"""Mutation operators over accesses: which part, how far, through which layout."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from benchmarks.verifier.edits import shifted, sites, with_expr, with_resource
from benchmarks.verifier.operators import Edit, Operator
from benchmarks.verifier.protocol_operators import one
from cake.ir.dtypes import I32
from cake.ir.nodes import (
    Call,
    Const,
    Expr,
    Static,
    Stmt,
    TensorRef,
    VarRef,
    View,
    walk_exprs,
    walk_stmts,
)
from cake.ir.program import Pipeline, Pool, Program, Role, Smem
from cake.ir.types import Scalar
from cake.ops.base import lookup

COMPARISONS = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}


def weaker_order(program: Program) -> Iterator[Edit]:
    """An atomic or an access that orders others no longer does."""
    for site in sites(program):
        for call in [e for e in walk_exprs(site.stmt) if isinstance(e, Call)]:
            primitive = lookup(call.op)
            assert primitive is not None
            for param, arg in zip(primitive.params, call.args, strict=True):
                ordered = isinstance(arg, Static) and arg.value in ("acquire", "release", "acq_rel")
                if param.name == "order" and arg is not None and ordered:
                    yield one(program, site.stmt, with_expr(site.stmt, arg, None))


def mask_too_far(program: Program) -> Iterator[Edit]:
    """A mask also lets through the element where its bound lies."""
    for site in sites(program):
        for mask in _operands(site.stmt, "mask"):
            for e in (mask, *walk_exprs(mask)):
                if isinstance(e, Call) and e.op in COMPARISONS:
                    new = replace(e, op=COMPARISONS[e.op])
                    yield one(program, site.stmt, with_expr(site.stmt, e, new))


def _operands(stmt: Stmt, name: str) -> Iterator[Expr]:
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call)]:
        primitive = lookup(call.op)
        assert primitive is not None
        for param, arg in zip(primitive.params, call.args, strict=True):
            if param.name == name and arg is not None:
                yield arg


def misaligned(program: Program) -> Iterator[Edit]:
    """A vector access begins one element further."""
    for site in sites(program):
        for call in [e for e in walk_exprs(site.stmt) if isinstance(e, Call)]:
            vector = call.op == "load" and call.args[1] is not None
            for ref in [a for a in call.args if vector and isinstance(a, TensorRef)]:
                moved = replace(ref, index=(*ref.index[:-1], shifted(ref.index[-1], 1)))
                yield one(program, site.stmt, with_expr(site.stmt, ref, moved))


def part_of_another(program: Program) -> Iterator[Edit]:
    """A unit, or a lane, accesses the part of shared memory that belongs to the first one."""
    for role in program.roles:
        for stmt in walk_stmts(role.body):
            for view in [e for e in walk_exprs(stmt) if isinstance(e, View)]:
                for e in [x for o in view.offsets for x in (o, *walk_exprs(o))]:
                    unit = isinstance(e, VarRef) and e.name == role.unit
                    if unit or (isinstance(e, Call) and e.op in ("lane", "thread", "warp")):
                        zero = Const(loc=e.loc, type=Scalar(I32), value=0)
                        yield one(program, stmt, with_expr(stmt, e, zero))


def first_stage(program: Program) -> Iterator[Edit]:
    """An access always names the first stage of its buffer."""
    for site in sites(program):
        for view in [e for e in walk_exprs(site.stmt) if isinstance(e, View)]:
            if view.stage is not None and not isinstance(view.stage, Const):
                zero = Const(loc=view.loc, type=Scalar(I32), value=0)
                yield one(program, site.stmt, with_expr(site.stmt, view, replace(view, stage=zero)))


def smaller_buffer(program: Program) -> Iterator[Edit]:
    """A buffer has half of its rows."""
    for decl in program.find(Smem):
        if decl.shape[0] > 1:
            new = replace(decl, shape=(decl.shape[0] // 2, *decl.shape[1:]))
            yield Edit(nodes=(decl,), program=with_resource(program, decl, new))


def more_registers(program: Program) -> Iterator[Edit]:
    """A role asks for 32 registers more a thread."""
    for role in program.find(Role):
        if role.regs is not None:
            new = replace(role, regs=role.regs + 32)
            yield Edit(nodes=(role,), program=with_resource(program, role, new))


def swizzle_of_one_side(program: Program) -> Iterator[Edit]:
    """One statement sees a buffer through another swizzle than all others."""
    rings = {name for ring in program.find(Pipeline) for name in ring.buffers}
    for decl in program.find(Smem):
        if decl.pool is not None or not decl.swizzle or decl.name in rings:
            continue
        room = Pool(loc=decl.loc, name=f"{decl.name}_room", bytes=_bytes(decl))
        placed = replace(decl, pool=room.name, offset=0)
        other = replace(placed, name=f"{decl.name}_other", swizzle=0)
        made = with_resource(program, decl, placed)
        at = made.resources.index(placed)
        kept = made.resources
        made = replace(made, resources=(*kept[:at], room, placed, other, *kept[at + 1 :]))
        for site in sites(made):
            for view in [e for e in walk_exprs(site.stmt) if isinstance(e, View)]:
                if view.base == decl.name:
                    new = with_expr(site.stmt, view, replace(view, base=other.name))
                    yield one(made, site.stmt, new)


def _bytes(decl: Smem) -> int:
    return decl.tile_bytes * (decl.stages or 1)


_ROOM = "a budget within the registers of the CTA changes no result"

MEMORY_OPERATORS: tuple[Operator, ...] = (
    Operator(name="weaker order", apply=weaker_order),
    Operator(name="mask too far", apply=mask_too_far),
    Operator(name="misaligned vector", apply=misaligned),
    Operator(name="part of another unit or lane", apply=part_of_another),
    Operator(name="first stage always", apply=first_stage),
    Operator(name="smaller buffer", apply=smaller_buffer),
    Operator(name="more registers", apply=more_registers, only_slack=_ROOM),
    Operator(name="swizzle of one side", apply=swizzle_of_one_side),
)
