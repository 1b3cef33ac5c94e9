"""``argmin_quad``, ``argmin_octet`` and the like: the lanes that hold a row or column agree on its
best."""

from __future__ import annotations

from collections.abc import Generator
from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32
from cake.ir.nodes import Call
from cake.ir.types import ColVector, Tuple, registers
from cake.ops import across_warps
from cake.ops.acc_parts import COLUMNS, ROWS, Axis
from cake.ops.argmin_fragment import pair_type, running_pair
from cake.ops.argmin_order import ORDERS, Order
from cake.ops.base import (
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.reduce_lanes import exchange, partial_vector

SCRATCH = (("scratch", F32), ("arg_scratch", I32))
"""Where the warps of a warpgroup meet: operand and element type."""


def _typing(axis: Axis, t: TypingContext, call: Call) -> Typed:
    best = running_pair(t, axis, call)
    for name in ("best", "arg"):
        partial_vector(t, axis, operand(call, name), name)
    if isinstance(best, ColVector):
        for name, dtype in SCRATCH:
            across_warps.typed_scratch(t, call, name, dtype, best.cols)
    return Typed(pair_type(best, partial=False), call.args)


# -- meaning ---------------------------------------------------------------------------------------


def _better(order: Order, a: tuple[Any, Any], b: tuple[Any, Any]) -> tuple[Any, Any]:
    """The better of two (value, index); the lower index wins a tie."""
    take = order.better(b[0], a[0]) | ((b[0] == a[0]) & (b[1] < a[1]))
    return np.where(take, b[0], a[0]), np.where(take, b[1], a[1])


def _folded(axis: Axis, order: Order, unit: Unit, call: Call) -> tuple[Any, Any]:
    best, arg = operand(call, "best"), operand(call, "arg")
    assert best is not None
    assert arg is not None
    pair = np.asarray(unit.eval(best)), np.asarray(unit.eval(arg))
    for distance in axis.steps:
        other = exchange(pair[0], distance), exchange(pair[1], distance)
        pair = _better(order, pair, other)
    return pair


def _octet_meaning(order: Order, unit: Unit, call: Call) -> Generator[Wait, None, Any]:
    pair = _folded(COLUMNS, order, unit, call)
    buffers = [operand(call, name) for name, _ in SCRATCH]
    if buffers[0] is not None:
        parts = [(b, v) for b, v in zip(buffers, pair, strict=True) if b is not None]
        values, args = yield from across_warps.gathered(unit, parts)
        pair = values[0], args[0]
        for w in range(1, across_warps.WARPS):
            pair = _better(order, pair, (values[w], args[w]))
    return pair


# -- emission --------------------------------------------------------------------------------------


def _emit(axis: Axis, order: Order, cg: Emitter, call: Call, dest: str | None) -> str:
    assert isinstance(call.type, Tuple)
    operands = [operand(call, "best"), operand(call, "arg")]
    best, arg = cg.fresh("best"), cg.fresh("arg")
    values = [cg.element(e, "i", e.type) for e in operands if e is not None]
    for name, item in zip((best, arg), call.type.items, strict=True):
        cg.declare(item, name)
    with cg.unrolled(registers(call.type.items[0])):
        cg.line(f"{best}[i] = {values[0]};")
        cg.line(f"{arg}[i] = {values[1]};")
        for distance in axis.steps:
            shuffle = f"__shfl_xor_sync(0xffffffffu, %s[i], {distance})"
            _emit_better(cg, order, (f"{best}[i]", f"{arg}[i]"), (shuffle % best, shuffle % arg))
    if axis is COLUMNS:
        _emit_across(cg, order, call, best, arg)
    return f"{best}, {arg}"


def _emit_better(cg: Emitter, order: Order, pair: tuple[str, str], new: tuple[str, str]) -> None:
    """Keep the better of a pair and a new one, in a block of its own."""
    other, other_arg, take = (cg.fresh(n) for n in ("other", "other_arg", "take"))
    best, arg = pair
    with cg.block(""):
        cg.line(f"const float {other} = {new[0]};")
        cg.line(f"const int {other_arg} = {new[1]};")
        tie = f"{other} == {best} && {other_arg} < {arg}"
        cg.line(f"const bool {take} = {other} {order.sign} {best} || ({tie});")
        cg.line(f"{best} = {take} ? {other} : {best};")
        cg.line(f"{arg} = {take} ? {other_arg} : {arg};")


def _emit_across(cg: Emitter, order: Order, call: Call, best: str, arg: str) -> None:
    buffers = [e for name, _ in SCRATCH if (e := operand(call, name)) is not None]
    if not buffers:
        return
    across_warps.emit_write(cg, list(zip(buffers, (best, arg), strict=True)))
    assert isinstance(call.type, Tuple)
    with cg.unrolled(registers(call.type.items[0]) // 2):
        parts = [across_warps.emit_read(cg, b) for b in buffers]
        for k in range(2):
            pair = f"{best}[2 * i + {k}]", f"{arg}[2 * i + {k}]"
            for name, part in zip(pair, parts, strict=True):
                cg.line(f"{name} = {part}[{k}];")
            for w in range(1, across_warps.WARPS):
                new = f"{parts[0]}[{2 * w + k}]", f"{parts[1]}[{2 * w + k}]"
                _emit_better(cg, order, pair, new)


# -- cost and registration -------------------------------------------------------------------------


def _cost(axis: Axis, call: Call, threads: int) -> Cost:
    assert isinstance(call.type, Tuple)
    vector = call.type.items[0]
    n = registers(vector) * threads * len(axis.steps)
    work = Cost(alu=n * 5, issue=n * 7 // 32, smem=n * 8)
    if isinstance(vector, ColVector):
        work += Cost(smem=2 * across_warps.scratch_bytes(vector.cols, threads))
    return work


def _octet_effects(call: Call) -> Effects:
    return across_warps.effects(call, *(name for name, _ in SCRATCH))


def _define(axis: Axis, order: Order) -> None:
    rows = axis is ROWS
    walk = f"{order.name}_{'cols' if rows else 'rows'}"
    exchanged = "1, then 2" if rows else "4, then 8, then 16"
    more = (
        ""
        if rows
        else """ In a warpgroup
the four warps then meet through ``scratch`` (f32) and ``arg_scratch`` (i32), (4, N) views of shared
memory, between two barriers of the unit; a warp takes no scratch."""
    )
    register(
        Primitive(
            name=f"{order.name}_{axis.group}",
            params=(
                Param("best"),
                Param("arg"),
                *(across_warps.scratch_param(name) for name, _ in SCRATCH if not rows),
            ),
            doc=f"""Partial (``best``, ``arg``) of ``{walk}`` made whole.

The {order.word} value of the lanes that hold a {axis.keeps} wins, on a tie that of the lower index;
lanes exchange at XOR distance {exchanged}.{more}""",
            source="PTX ISA, shfl.sync.bfly",
            typing=partial(_typing, axis),
            effects=no_effects if rows else _octet_effects,
            meaning=partial(_folded, axis, order) if rows else partial(_octet_meaning, order),
            cost=partial(_cost, axis),
            emit={"": partial(_emit, axis, order)},
            convergent=True,
        )
    )


for _axis in (ROWS, COLUMNS):
    for _order in ORDERS:
        _define(_axis, _order)
