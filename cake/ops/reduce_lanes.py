"""``reduce_quad`` and ``reduce_octet``: the lanes that hold a row or column agree on its fold."""

from __future__ import annotations

from collections.abc import Callable, Generator
from functools import partial, reduce
from typing import Any

import numpy as np

from cake.ir.nodes import Call, Expr
from cake.ir.types import ColVector, RowVector, SmemView, registers
from cake.ops import across_warps, check, folds
from cake.ops.acc_parts import COLUMNS, ROWS, Axis
from cake.ops.base import (
    Cost,
    Effects,
    Emit,
    Meaning,
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
from cake.ops.machine import Unit, Wait

Vector = RowVector | ColVector


def partial_vector(t: TypingContext, axis: Axis, e: Expr | None, what: str) -> Vector:
    """A partial row (column) vector of f32, i32 or u32."""
    kind = RowVector if axis.keeps == "row" else ColVector
    if e is None or not isinstance(e.type, kind):
        got = "nothing" if e is None else check.describe(e)
        t.fail(f"{what} must be a {axis.keeps} vector, got {got}", e)
    if not e.type.partial:
        made = "reduce_rows and argmin_cols" if axis is ROWS else "reduce_cols and argmin_rows"
        t.fail(
            f"{what} is whole already: its lanes agree",
            e,
            helps=(f"partial vectors come from {made}",),
        )
    return e.type


def whole(t: Vector) -> Vector:
    """The type of a vector whose lanes agree."""
    if isinstance(t, RowVector):
        return RowVector(t.dtype, t.rows, t.warps)
    return ColVector(t.dtype, t.cols)


def exchange(value: Any, distance: int) -> Any:
    """``shfl.sync.bfly``: what the lane at XOR ``distance`` holds; axis 0 are the threads."""
    return value[np.arange(len(value)) ^ distance]


def _typing(axis: Axis, t: TypingContext, call: Call) -> Typed:
    vector = partial_vector(t, axis, call.args[0], f"{axis.short}s")
    folds.typed_op(t, call)
    if isinstance(vector, ColVector):
        across_warps.typed_scratch(t, call, "scratch", vector.dtype, vector.cols)
    return Typed(whole(vector), call.args)


# -- meaning ---------------------------------------------------------------------------------------


def _folded(axis: Axis, unit: Unit, call: Call) -> Any:
    x = call.args[0]
    assert x is not None
    value = np.asarray(unit.eval(x))
    for distance in axis.steps:
        value = folds.combine(static(call, "op"), value, exchange(value, distance))
    return value


def _octet_meaning(unit: Unit, call: Call) -> Generator[Wait, None, Any]:
    value = _folded(COLUMNS, unit, call)
    scratch = operand(call, "scratch")
    if scratch is not None:
        (warps,) = yield from across_warps.gathered(unit, [(scratch, value)])
        value = reduce(lambda a, b: folds.combine(static(call, "op"), a, b), warps)
    return value


# -- emission --------------------------------------------------------------------------------------


def _emit(axis: Axis, cg: Emitter, call: Call, dest: str | None) -> str:
    x, op, t = call.args[0], static(call, "op"), call.type
    assert x is not None
    assert isinstance(t, RowVector | ColVector)
    value = cg.element(x, "i", t)
    name = dest or cg.fresh(f"{axis.short}_{op}")
    if dest is None:
        cg.declare(t, name)
    with cg.unrolled(t.registers):
        cg.line(f"{name}[i] = {value};")
        for distance in axis.steps:
            other = f"__shfl_xor_sync(0xffffffffu, {name}[i], {distance})"
            cg.line(f"{name}[i] = {folds.c_combine(op, t.dtype, f'{name}[i]', other)};")
    scratch = call.args[2] if axis is COLUMNS else None
    if scratch is not None:
        _emit_across(cg, scratch, op, name)
    return name


def _emit_across(cg: Emitter, scratch: Expr, op: str, name: str) -> None:
    assert isinstance(scratch.type, SmemView)
    dtype, cols = scratch.type.dtype, scratch.type.shape[1]
    across_warps.emit_write(cg, [(scratch, name)])
    with cg.unrolled(cols // 8):
        part = across_warps.emit_read(cg, scratch)
        for k in range(2):
            terms = [f"{part}[{2 * w + k}]" for w in range(across_warps.WARPS)]
            folded = reduce(lambda a, b: folds.c_combine(op, dtype, a, b), terms)
            cg.line(f"{name}[2 * i + {k}] = {folded};")


# -- cost and registration -------------------------------------------------------------------------


def _cost(axis: Axis, call: Call, threads: int) -> Cost:
    n = len(axis.steps) * registers(call.type) * threads
    work = Cost(alu=n, issue=2 * n // 32, smem=4 * n)
    if isinstance(call.type, ColVector):
        work += Cost(smem=across_warps.scratch_bytes(call.type.cols, threads))
    return work


def _octet_effects(call: Call) -> Effects:
    return across_warps.effects(call, "scratch")


def _define(
    axis: Axis,
    *,
    effects: Callable[[Call], Effects],
    meaning: Meaning,
    more: tuple[Param, ...],
    doc: str,
) -> None:
    emit: Emit = partial(_emit, axis)
    register(
        Primitive(
            name=f"reduce_{axis.group}",
            params=(Param(f"{axis.short}s"), Param("op", "static"), *more),
            doc=doc,
            source="PTX ISA, shfl.sync.bfly",
            typing=partial(_typing, axis),
            effects=effects,
            meaning=meaning,
            cost=partial(_cost, axis),
            emit={"": emit},
            convergent=True,
        )
    )


_define(
    ROWS,
    effects=no_effects,
    meaning=partial(_folded, ROWS),
    more=(),
    doc="""The partial row vector ``rows`` made whole: its four lanes fold with ``op``, then agree.

``op`` is "sum", "min" or "max". Lanes exchange at XOR distance 1, then 2; both partners compute
the same sum, so all four lanes hold the same bits.""",
)
_define(
    COLUMNS,
    effects=_octet_effects,
    meaning=_octet_meaning,
    more=(across_warps.scratch_param("scratch"),),
    doc="""The partial column vector ``cols`` made whole: its lanes fold with ``op``, then agree.

``op`` is "sum", "min" or "max". Lanes exchange at XOR distance 4, then 8, then 16. In a warpgroup
the four warps then fold in ascending order through ``scratch``, a (4, N) view of shared memory of
the vector's element type, between two barriers of the unit; a warp takes no scratch.""",
)
