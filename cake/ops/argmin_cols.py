"""``argmin_cols`` and ``argmax_cols``: each lane folds its columns into a running best."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32
from cake.ir.nodes import Call, Expr
from cake.ir.types import Fragment, RowVector, Tuple
from cake.ops import check
from cake.ops.argmin_emission import emit_columns
from cake.ops.argmin_order import ORDERS, Order
from cake.ops.base import (
    Cost,
    Emit,
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
from cake.ops.reduce_rows import acc_fragment, by_row

GROUPS = (1, 2, 4, 8)


def running_pair(t: TypingContext, call: Call) -> RowVector:
    """Operands ``best`` (f32) and ``arg`` (i32): row vectors of the same rows."""
    vectors = []
    for name, dtype in (("best", F32), ("arg", I32)):
        e = operand(call, name)
        assert e is not None
        if not isinstance(e.type, RowVector) or e.type.dtype != dtype:
            t.fail(f"{name} must be a row vector of {dtype}, got {check.describe(e)}", e)
        vectors.append(e.type)
    best, arg = vectors
    if (best.rows, best.warps) != (arg.rows, arg.warps):
        t.fail(f"best has {best.rows} rows, arg has {arg.rows}", operand(call, "arg"))
    return best


def pair_type(rows: RowVector, partial: bool) -> Tuple:
    """Types of the two results."""
    return Tuple(tuple(RowVector(d, rows.rows, rows.warps, partial) for d in (F32, I32)))


def _typing(t: TypingContext, call: Call) -> Typed:
    d, best = acc_fragment(t, call, "d", (F32,)), running_pair(t, call)
    if (best.rows, best.warps) != (d.shape[0], d.warps):
        t.fail(
            f"best has {best.rows} rows, d has {d.shape[0]}",
            operand(call, "best"),
            facts={"rows": best.rows, "expected": d.shape[0]},
        )
    base, group = operand(call, "base"), operand(call, "group")
    args = list(call.args)
    if base is not None:
        args[3] = t.coerce(check.uniform(t, check.integer(t, base, "base"), "base"), I32)
    check.one_of(t, group, "group", GROUPS)
    columns, size = d.shape[1] // 4, static(call, "group")
    if columns % size:
        t.fail(
            f"a lane holds {columns} columns of a row, which groups of {size} do not divide",
            group,
            facts={"columns": columns, "group": size},
        )
    return Typed(pair_type(best, True), tuple(args))


def _operands(call: Call) -> tuple[Expr, Fragment, Expr, Expr]:
    d, best, arg = (operand(call, n) for n in ("d", "best", "arg"))
    assert d is not None
    assert isinstance(d.type, Fragment)
    assert best is not None
    assert arg is not None
    return d, d.type, best, arg


def _meaning(order: Order, unit: Unit, call: Call) -> Any:
    d, t, best, arg = _operands(call)
    base, group = operand(call, "base"), static(call, "group")
    index = by_row(t)
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
    c = won * group + np.argmax(members == top, axis=-1)
    lane_column = (np.arange(unit.threads) % 4 * 2)[:, None]
    column = c // 2 * 8 + c % 2 + lane_column + (0 if base is None else unit.eval(base))
    return new.astype(np.float32), np.where(better, column, old_arg).astype(np.int32)


def _check_start(unit: Unit, call: Call, best: Any) -> None:
    bad = np.isnan(best).any(axis=1) & unit.mask
    if bad.any():
        unit.fail(
            NAN_START,
            f"{call.op}: the running best is NaN, which no value beats",
            primitive=call.op,
            threads=int(np.count_nonzero(bad)),
        )


def _cost(call: Call, threads: int) -> Cost:
    _, t, _, _ = _operands(call)
    group = static(call, "group")
    groups = t.registers // group
    rows = t.registers * 4 // t.shape[1]
    # A group: folds, a comparison, and a conditional move for every part of the state.
    n = threads * (groups * (2 * group + 1) + rows * 2 * group)
    return Cost(alu=n, issue=n // 32)


def _define(order: Order, emit: Emit) -> None:
    register(
        Primitive(
            name=f"{order.name}_cols",
            params=(
                Param("d"),
                Param("best"),
                Param("arg"),
                Param("base", default=0, keyword_only=True),
                Param("group", "static", 1, keyword_only=True),
            ),
            doc=f"""Fold an f32 accumulator fragment into a running best of each row: (best, arg).

``best`` (f32) and ``arg`` (i32) are row vectors, usually ``partial=True``: every lane keeps the
{order.word} value of the columns it holds, and ``base`` plus the column. A value replaces the best
only if it is strictly better, and columns ascend, so the lowest index wins a tie; a NaN never
wins, and ``best`` must not start as one. ``group=g`` (1, 2, 4, 8) compares the best of g neighbours
at once: same index, fewer comparisons (the sign of a zero may differ). ``{order.name}_quad``
completes the rows.""",
            source="PTX ISA, Matrix Fragments for mma.m16n8k16: a row lies in the lanes of a quad",
            typing=_typing,
            effects=no_effects,
            meaning=partial(_meaning, order),
            cost=_cost,
            emit={"": emit},
        )
    )


for _order in ORDERS:
    _define(_order, partial(emit_columns, _order))
