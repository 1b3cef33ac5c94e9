"""``scan_registers``: prefix folds over each thread's register array."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import RegArray
from cake.ops import check, fills, folds
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> RegArray:
    x = operand(call, "x")
    assert x is not None
    if not isinstance(x.type, RegArray) or x.type.dtype not in folds.DTYPES:
        names = ", ".join(d.name for d in folds.DTYPES)
        t.fail(f"x must be registers of {names}, got {check.describe(x)}", x)
    folds.typed_op(t, call)
    fills.flag(t, call, "exclusive")
    return x.type


def _meaning(unit: Unit, call: Call) -> Any:
    x, op = operand(call, "x"), static(call, "op")
    assert x is not None
    assert isinstance(call.type, RegArray)
    value = np.asarray(unit.eval(x))
    out = np.empty_like(value)
    exclusive = static(call, "exclusive")
    if exclusive:
        out[:, 0] = folds.identity(op, call.type.dtype)
    else:
        out[:, 0] = value[:, 0]
    for i in range(1, call.type.length):
        out[:, i] = folds.combine(op, out[:, i - 1], value[:, i - exclusive])
    return out


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, op, t = operand(call, "x"), static(call, "op"), call.type
    assert x is not None
    assert isinstance(t, RegArray)
    name = dest or cg.fresh("scan")
    if dest is None:
        cg.declare(t, name)
    exclusive = static(call, "exclusive")
    first = folds.c_identity(op, t.dtype) if exclusive else cg.element(x, "0", t)
    value = cg.element(x, "i" if exclusive else "(i + 1)", t)
    cg.line(f"{name}[0] = {first};")
    with cg.unrolled(t.length - 1):
        cg.line(f"{name}[i + 1] = {folds.c_combine(op, t.dtype, f'{name}[i]', value)};")
    return name


def _cost(call: Call, threads: int) -> Cost:
    assert isinstance(call.type, RegArray)
    n = call.type.length * threads
    return Cost(alu=n, issue=n // 32)


register(
    Primitive(
        name="scan_registers",
        params=(
            Param("x"),
            Param("op", "static", "sum"),
            Param("exclusive", "static", False, keyword_only=True),
        ),
        doc="""The prefix folds of each thread's register array ``x``, in ascending order.

``op`` is "sum" (default), "min" or "max", over f32, i32 or u32. ``exclusive=True`` leaves out the
element itself: the first is then 0 (the largest, smallest value for min, max).""",
        source="PTX ISA, add, min, max",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
