"""``reduce_rows`` and ``reduce_cols``: each lane folds what it holds of a row or column."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import Fragment
from cake.ops import folds
from cake.ops.acc_parts import COLUMNS, ROWS, Axis, acc_fragment, registers_of
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


def _typing(axis: Axis, t: TypingContext, call: Call) -> Typed:
    fragment = acc_fragment(t, call, "fragment")
    folds.typed_op(t, call)
    return Typed(axis.vector(fragment, fragment.dtype, partial=True), call.args)


def _parts(call: Call) -> tuple[Any, Fragment, str]:
    x = operand(call, "fragment")
    assert x is not None
    assert isinstance(x.type, Fragment)
    return x, x.type, static(call, "op")


def _meaning(axis: Axis, unit: Unit, call: Call) -> Any:
    x, t, op = _parts(call)
    walk = np.moveaxis(unit.eval(x)[:, registers_of(axis, t)], -1, 0)
    return reduce(lambda a, b: folds.combine(op, a, b), walk).copy()


def _emit(axis: Axis, cg: Emitter, call: Call, dest: str | None) -> str:
    x, t, op = _parts(call)
    stem, var = ("row", "r") if axis.keeps == "row" else ("col", "c")
    name, kept = dest or cg.fresh(f"{stem}_{op}"), cg.fresh(var)
    walked = cg.fresh("c" if var == "r" else "r")
    if dest is None:
        cg.declare(call.type, name)
    first = cg.element(x, axis.register(t, kept, "0"), t)
    rest = cg.element(x, axis.register(t, kept, f"({walked} + 1)"), t)
    with cg.unrolled(axis.kept(t), kept):
        cg.line(f"{name}[{kept}] = {first};")
        with cg.unrolled(axis.walked(t) - 1, walked):
            cg.line(f"{name}[{kept}] = {folds.c_combine(op, t.dtype, f'{name}[{kept}]', rest)};")
    return name


def _cost(call: Call, threads: int) -> Cost:
    _, t, op = _parts(call)
    n = t.registers * threads
    fma = op == "sum" and t.dtype.is_float
    return Cost(fma=n if fma else 0, alu=0 if fma else n, issue=n // 32)


for _axis, _name, _walk, _lanes in (
    (ROWS, "reduce_rows", "columns", "four lanes of a quad"),
    (COLUMNS, "reduce_cols", "rows", "eight lanes of an octet"),
):
    register(
        Primitive(
            name=_name,
            params=(Param("fragment"), Param("op", "static")),
            doc=f"""The fold of each {_axis.keeps} of ``fragment`` over the {_walk} that a lane
holds, as a partial {_axis.keeps} vector.

``op`` is "sum", "min" or "max" (NaN loses against numbers), over f32, i32 or u32. A lane starts
with the first of its {_walk} and goes on in ascending order, so f32 sums round alike in simulator
and GPU. ``reduce_{_axis.group}`` completes the {_axis.keeps}s.""",
            source=f"PTX ISA, Matrix Fragments for mma.m16n8k16: a {_axis.keeps} lies in {_lanes}",
            typing=partial(_typing, _axis),
            effects=no_effects,
            meaning=partial(_meaning, _axis),
            cost=_cost,
            emit={"": partial(_emit, _axis)},
        )
    )
