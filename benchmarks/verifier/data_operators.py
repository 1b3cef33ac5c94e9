"""Mutation operators over what is copied, computed and counted: extents, coordinates, bounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from benchmarks.verifier.edits import (
    Statements,
    number,
    shifted,
    sites,
    with_expr,
    with_statements,
)
from benchmarks.verifier.memory_operators import MEMORY_OPERATORS
from benchmarks.verifier.operators import SYNC_OPERATORS, Edit, Operator, dropping
from benchmarks.verifier.protocol_operators import PROTOCOL_OPERATORS, steps
from cake.ir.dtypes import I32, I64
from cake.ir.nodes import Call, Expr, For, If, Static, Stmt, TensorRef, View, While, walk_exprs
from cake.ir.program import Program, Smem
from cake.ir.types import Scalar, SmemView
from cake.ops.base import lookup

COPIES = ("tma_load", "cp_async", "tma_store", "bulk_load", "bulk_store", "tma_reduce_add")
PRODUCTS = ("wgmma", "mma", "tcgen05_mma", "ldmatrix", "stmatrix")
Change = tuple[Expr, Expr | None]


def rewriting(
    changes: Callable[[Program, Stmt], Iterator[Change]],
) -> Callable[..., Iterator[Edit]]:
    """One mutant for each expression that ``changes`` offers in a statement."""

    def apply(program: Program) -> Iterator[Edit]:
        for site in sites(program):
            for old, new in changes(program, site.stmt):
                stmt = with_expr(site.stmt, old, new)
                edits = {site.stmt: (stmt,)}
                yield Edit(nodes=(site.stmt,), program=with_statements(program, edits))

    return apply


def _views(stmt: Stmt, ops: tuple[str, ...]) -> Iterator[View]:
    for e in walk_exprs(stmt):
        if isinstance(e, Call) and e.op in ops:
            yield from (a for a in e.args if isinstance(a, View))


def _resized(program: Program, view: View, by: int) -> Iterator[Change]:
    """The view with ``by`` rows more or less; it stays inside the buffer."""
    decl = program.resource(view.base)
    if not isinstance(decl, Smem) or not isinstance(view.type, SmemView) or not view.type.shape:
        return
    rows, *rest = view.type.shape
    whole = decl.shape[len(decl.shape) - len(view.type.shape)]
    if 0 < rows + by <= whole:
        yield view, replace(view, type=replace(view.type, shape=(rows + by, *rest)))


def shrink_copy(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A copy brings half of the rows."""
    for view in _views(stmt, COPIES):
        if isinstance(view.type, SmemView) and view.type.shape:
            yield from _resized(program, view, -(view.type.shape[0] // 2) or -1)


def grow_copy(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A copy brings twice the rows."""
    for view in _views(stmt, COPIES):
        if isinstance(view.type, SmemView) and view.type.shape:
            yield from _resized(program, view, view.type.shape[0])


def move_copy(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A copy meets shared memory eight rows further."""
    yield from _offset(stmt, COPIES, 8, axis=-2)


def move_operand(program: Program, stmt: Stmt) -> Iterator[Change]:
    """An operand of a product begins 16 columns or 16 rows further."""
    yield from _offset(stmt, PRODUCTS, 16, axis=-1)
    yield from _offset(stmt, PRODUCTS, 16, axis=-2)


def _offset(stmt: Stmt, ops: tuple[str, ...], by: int, axis: int) -> Iterator[Change]:
    for view in _views(stmt, ops):
        if len(view.offsets) >= -axis:
            yield view, replace(view, offsets=_moved(view.offsets, axis, by))


def _moved(indices: tuple[Expr, ...], axis: int, by: int) -> tuple[Expr, ...]:
    """``indices`` with one changed; equal ones may be one object, so they are told by axis."""
    axis %= len(indices)
    return (*indices[:axis], shifted(indices[axis], by), *indices[axis + 1 :])


def other_stage(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A statement names the next stage of a buffer, cyclically."""
    for view in [e for e in walk_exprs(stmt) if isinstance(e, View)]:
        decl = program.resource(view.base)
        if view.stage is None or not isinstance(decl, Smem) or not (decl.stages or 0) > 1:
            continue
        assert decl.stages is not None
        # A slot is no number: it becomes one when 0 is added.
        index = Call(
            loc=view.loc,
            type=Scalar(I32),
            op="mod",
            args=(shifted(view.stage, 1), number(view.offsets[0], decl.stages)),
        )
        yield view, replace(view, stage=index)


def coordinates(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A global coordinate is one further on one axis."""
    for ref in [e for e in walk_exprs(stmt) if isinstance(e, TensorRef)]:
        for axis in range(len(ref.index)):
            yield ref, replace(ref, index=_moved(ref.index, axis, 1))


def drop_mask(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A masked access loses its mask."""
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call)]:
        primitive = lookup(call.op)
        assert primitive is not None
        for param, arg in zip(primitive.params, call.args, strict=True):
            if param.name in ("mask", "fill", "clamp") and arg is not None and param.keyword_only:
                yield arg, None


def drop_init(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A product no longer starts its accumulator; a fragment is no longer filled."""
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call)]:
        primitive = lookup(call.op)
        assert primitive is not None
        filled = ("fragment", "registers", "row_vector", "col_vector")
        for param, arg in zip(primitive.params, call.args, strict=True):
            started = param.name == "init" or (param.name == "fill" and call.op in filled)
            if started and arg is not None and not _is(arg, False):
                yield arg, None


def _is(e: Expr, value: object) -> bool:
    return isinstance(e, Static) and e.value is value


def add_init(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A product that adds to its accumulator starts it anew."""
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call)]:
        if call.op not in ("wgmma", "tcgen05_mma"):
            continue
        primitive = lookup(call.op)
        assert primitive is not None
        at = primitive.param_index("init")
        if call.args[at] is None or _is(call.args[at], False):  # type: ignore[arg-type]
            start = Static(loc=call.loc, type=call.args[0].type, value=True)  # type: ignore[union-attr]
            yield call, replace(call, args=(*call.args[:at], start, *call.args[at + 1 :]))


def narrow(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A 64-bit integer is computed in 32 bits."""
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call)]:
        for arg in call.args:
            if isinstance(arg, Static) and arg.value is I64:
                yield arg, replace(arg, value=I32)


def bound(which: str, by: int) -> Callable[[Program, Stmt], Iterator[Change]]:
    """A loop of one role begins or ends one step later or earlier."""

    def changes(program: Program, stmt: Stmt) -> Iterator[Change]:
        # Loops that step rings and barriers have operators of their own.
        if isinstance(stmt, For) and not steps(stmt):
            e: Expr = getattr(stmt, which)
            step = stmt.step.value if hasattr(stmt.step, "value") else 1
            yield e, shifted(e, by * int(step))

    return changes


def condition(program: Program, stmt: Stmt) -> Iterator[Change]:
    """A comparison includes, or no longer includes, equality."""
    neighbour = {"lt": "le", "le": "lt", "gt": "ge", "ge": "gt"}
    if not isinstance(stmt, If | While):
        return
    for call in [e for e in walk_exprs(stmt) if isinstance(e, Call) and e.op in neighbour]:
        yield call, replace(call, op=neighbour[call.op])


def unguard(program: Program) -> Iterator[Edit]:
    """``if cond:`` is executed always."""
    for site in sites(program):
        if isinstance(site.stmt, If) and not site.stmt.orelse:
            edits: dict[Stmt, Statements] = {site.stmt: site.stmt.then}
            yield Edit(nodes=(site.stmt,), program=with_statements(program, edits))


def drop_guard(program: Program) -> Iterator[Edit]:
    """A launch guard is left out."""
    for guard in program.guards:
        kept = tuple(g for g in program.guards if g is not guard)
        yield Edit(nodes=(guard,), program=replace(program, guards=kept))


def drop_call(program: Program) -> Iterator[Edit]:
    """A copy, store or product is left out."""
    yield from dropping(*COPIES, *PRODUCTS, "store")(program)


DATA_OPERATORS: tuple[Operator, ...] = (
    Operator(name="shrink copy", apply=rewriting(shrink_copy)),
    Operator(name="grow copy", apply=rewriting(grow_copy)),
    Operator(name="move copy in its tile", apply=rewriting(move_copy)),
    Operator(name="other stage", apply=rewriting(other_stage)),
    Operator(name="drop mask", apply=rewriting(drop_mask)),
    Operator(name="drop init", apply=rewriting(drop_init)),
    Operator(name="int64 to int32", apply=rewriting(narrow)),
    Operator(name="loop ends later", apply=rewriting(bound("stop", 1))),
    Operator(name="loop ends earlier", apply=rewriting(bound("stop", -1)), values=True),
    Operator(name="loop begins later", apply=rewriting(bound("start", 1)), values=True),
    Operator(name="move operand slice", apply=rewriting(move_operand), values=True),
    Operator(name="move coordinate", apply=rewriting(coordinates), values=True),
    Operator(name="add init", apply=rewriting(add_init), values=True),
    Operator(name="shift comparison", apply=rewriting(condition), values=True),
    Operator(name="drop condition", apply=unguard, values=True),
    Operator(name="drop guard", apply=drop_guard, values=True),
    Operator(name="drop copy or product", apply=drop_call, values=True),
)

OPERATORS = SYNC_OPERATORS + PROTOCOL_OPERATORS + MEMORY_OPERATORS + DATA_OPERATORS
"""Every operator, in the order of the tables."""


def operator(name: str) -> Operator:
    """The operator called ``name`` (KeyError if there is none)."""
    return {o.name: o for o in OPERATORS}[name]
