"""``argmin_cols``, ``argmin_rows`` and the like: each lane folds what it holds into a running best.

The name says what is folded: ``argmin_cols`` walks over the columns of each row.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial, reduce
from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32
from cake.ir.nodes import Call, Expr
from cake.ir.types import ColVector, Fragment, RowVector, Tuple
from cake.ops import check
from cake.ops.acc_parts import COLUMNS, ROWS, Axis, acc_fragment, registers_of
from cake.ops.argmin_emission import emit_walk
from cake.ops.argmin_order import ORDERS, Order
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)
from cake.ops.findings import NAN_START
from cake.ops.machine import Unit
from cake.ops.reduce_lanes import Vector

GROUPS = (1, 2, 4, 8)


def running_pair(t: TypingContext, axis: Axis, call: Call) -> Vector:
    """Operands ``best`` (f32) and ``arg`` (i32): row (column) vectors of the same extent."""
    vectors = []
    kind = RowVector if axis.keeps == "row" else ColVector
    for name, dtype in (("best", F32), ("arg", I32)):
        e = operand(call, name)
        assert e is not None
        if not isinstance(e.type, kind) or e.type.dtype != dtype:
            t.fail(f"{name} must be a {axis.keeps} vector of {dtype}, got {check.describe(e)}", e)
        vectors.append(e.type)
    best, arg = vectors
    if extent(best) != extent(arg):
        held = f"{extent(best)} {axis.keeps}s"
        t.fail(f"best has {held}, arg has {extent(arg)}", operand(call, "arg"))
    return best


def extent(t: Vector) -> int:
    """Rows or columns of a vector."""
    return t.rows if isinstance(t, RowVector) else t.cols


def pair_type(t: Vector, *, partial: bool) -> Tuple:
    """Types of the two results."""
    return Tuple(tuple(replace(t, dtype=d, partial=partial) for d in (F32, I32)))


def _typing(axis: Axis, t: TypingContext, call: Call) -> Typed:
    d, best = acc_fragment(t, call, "d", (F32,)), running_pair(t, axis, call)
    kept = d.shape[0 if axis.keeps == "row" else 1]
    if extent(best) != kept:
        t.fail(
            f"best has {extent(best)} {axis.keeps}s, d has {kept}",
            operand(call, "best"),
            facts={f"{axis.keeps}s": extent(best), "expected": kept},
        )
    base, group = operand(call, "base"), operand(call, "group")
    args = list(call.args)
    if base is not None:
        args[3] = t.coerce(check.uniform(t, check.integer(t, base, "base"), "base"), I32)
    check.one_of(t, group, "group", GROUPS)
    walked, size = axis.walked(d), static(call, "group")
    if walked % size:
        other = COLUMNS if axis is ROWS else ROWS
        t.fail(
            f"a lane holds {walked} {other.keeps}s of a {axis.keeps}, which groups of {size} do not"
            " divide",
            group,
            facts={f"{other.keeps}s": walked, "group": size},
        )
    return Typed(pair_type(best, partial=True), tuple(args))


def _operands(call: Call) -> tuple[Expr, Fragment, Expr, Expr]:
    d, best, arg = (operand(call, n) for n in ("d", "best", "arg"))
    assert d is not None
    assert isinstance(d.type, Fragment)
    assert best is not None
    assert arg is not None
    return d, d.type, best, arg


def _meaning(axis: Axis, order: Order, unit: Unit, call: Call) -> Any:
    d, t, best, arg = _operands(call)
    base, group = operand(call, "base"), static(call, "group")
    index = registers_of(axis, t)
    x = unit.eval(d)[:, index].reshape(unit.threads, len(index), -1, group)
    old, old_arg = unit.eval(best), unit.eval(arg)
    _check_start(unit, call, old)
    with np.errstate(all="ignore"):
        value = reduce(order.best, np.moveaxis(x, -1, 0))
        won = order.first(np.where(np.isnan(value), order.worst, value), axis=-1)
        top = np.take_along_axis(value, won[..., None], -1)
        members = np.take_along_axis(x, won[..., None, None], 2)[:, :, 0]
        better = order.better(top[..., 0], old)
        if group == 1:
            new = np.where(better, top[..., 0], old)
        else:
            new = reduce(order.best, np.moveaxis(value, -1, 0), old)
    place = axis.distance(won * group + np.argmax(members == top, axis=-1))
    place = place + axis.lane_positions(t)[:, None] + (0 if base is None else unit.eval(base))
    return new.astype(np.float32), np.where(better, place, old_arg).astype(np.int32)


def _check_start(unit: Unit, call: Call, best: Any) -> None:
    bad = np.isnan(best).any(axis=1) & unit.mask
    if bad.any():
        unit.fail(
            NAN_START,
            f"{call.op}: the running best is NaN, which no value beats",
            primitive=call.op,
            threads=int(np.count_nonzero(bad)),
        )


def _cost(axis: Axis, call: Call, threads: int) -> Cost:
    _, t, _, _ = _operands(call)
    group = static(call, "group")
    groups = t.registers // group
    # A group: folds, a comparison, and a conditional move for every part of the state.
    n = threads * (groups * (2 * group + 1) + axis.kept(t) * 2 * group)
    return Cost(alu=n, issue=n // 32)


def _define(axis: Axis, order: Order) -> None:
    other = COLUMNS if axis is ROWS else ROWS
    register(
        Primitive(
            name=f"{order.name}_{other.short}s",
            params=(
                Param("d"),
                Param("best"),
                Param("arg"),
                Param("base", default=0, keyword_only=True),
                Param("group", "static", 1, keyword_only=True),
            ),
            doc=f"""Fold an f32 accumulator fragment ``d`` into a running best of each {axis.keeps}:
(best, arg).

``best`` (f32) and ``arg`` (i32) are {axis.keeps} vectors, usually ``partial=True``: every lane
keeps the {order.word} value of the {other.keeps}s it holds, and ``base`` plus the {other.keeps}. A
value replaces the best only if it is strictly better, and {other.keeps}s ascend, so the lowest
index wins a tie; a NaN never wins, and ``best`` must not start as one. ``group=g`` (1, 2, 4, 8)
compares the best of g neighbours at once: same index, fewer comparisons (the sign of a zero may
differ). ``{order.name}_{axis.group}`` completes the {axis.keeps}s.""",
            source="PTX ISA, Matrix Fragments for mma.m16n8k16: which lanes hold a row or column",
            typing=partial(_typing, axis),
            effects=no_effects,
            meaning=partial(_meaning, axis, order),
            cost=partial(_cost, axis),
            emit={"": partial(emit_walk, axis, order)},
        )
    )


for _axis in (ROWS, COLUMNS):
    for _order in ORDERS:
        _define(_axis, _order)
