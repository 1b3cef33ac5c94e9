"""``reduce_quad``: the four lanes that hold a row agree on its fold."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.nodes import Call, Expr
from cake.ir.types import RowVector, registers
from cake.ops import check, folds
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
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

STEPS = (1, 2)
"""Lane distances of the two exchanges within a quad."""


def partial_rows(t: TypingContext, e: Expr | None, what: str) -> tuple[Expr, RowVector]:
    """A partial row vector of f32, i32 or u32."""
    if e is None or not isinstance(e.type, RowVector):
        t.fail(f"{what} must be a row vector, got {'nothing' if e is None else check.describe(e)}")
    if not e.type.partial:
        t.fail(
            f"{what} is whole already: its lanes agree",
            e,
            helps=("partial vectors come from reduce_rows and argmin_cols",),
        )
    return e, e.type


def exchange(value: Any, distance: int) -> Any:
    """``shfl.sync.bfly``: what the lane at XOR ``distance`` holds; axis 0 are the threads."""
    return value[np.arange(len(value)) ^ distance]


def _typing(t: TypingContext, call: Call) -> Typed:
    _, rows = partial_rows(t, operand(call, "rows"), "rows")
    folds.typed_op(t, call)
    return Typed(RowVector(rows.dtype, rows.rows, rows.warps), call.args)


def _meaning(unit: Unit, call: Call) -> Any:
    x = operand(call, "rows")
    assert x is not None
    value = np.asarray(unit.eval(x))
    for distance in STEPS:
        value = folds.combine(static(call, "op"), value, exchange(value, distance))
    return value


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, op, t = operand(call, "rows"), static(call, "op"), call.type
    assert x is not None
    assert isinstance(t, RowVector)
    value = cg.element(x, "i", t)
    name = dest or cg.fresh(f"row_{op}")
    if dest is None:
        cg.declare(t, name)
    with cg.unrolled(t.registers):
        cg.line(f"{name}[i] = {value};")
        for distance in STEPS:
            other = f"__shfl_xor_sync(0xffffffffu, {name}[i], {distance})"
            cg.line(f"{name}[i] = {folds.c_combine(op, t.dtype, f'{name}[i]', other)};")
    return name


def _cost(call: Call, threads: int) -> Cost:
    n = 2 * registers(call.type) * threads
    return Cost(alu=n, issue=2 * n // 32, smem=4 * n)


register(
    Primitive(
        name="reduce_quad",
        params=(Param("rows"), Param("op", "static")),
        doc="""A partial row vector made whole: its four lanes fold with ``op`` and then agree.

``op`` is "sum", "min" or "max". Lanes exchange at XOR distance 1, then 2; both partners compute
the same sum, so all four lanes hold the same bits.""",
        source="PTX ISA, shfl.sync.bfly",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        convergent=True,
    )
)
