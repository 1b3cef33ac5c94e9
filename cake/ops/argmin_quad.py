"""``argmin_quad`` and ``argmax_quad``: the four lanes that hold a row agree on its best."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import Tuple, registers
from cake.ops.argmin_cols import pair_type, running_pair
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
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.reduce_quad import STEPS, exchange, partial_rows


def _typing(t: TypingContext, call: Call) -> Typed:
    best = running_pair(t, call)
    for name in ("best", "arg"):
        partial_rows(t, operand(call, name), name)
    return Typed(pair_type(best, False), call.args)


def _meaning(order: Order, unit: Unit, call: Call) -> Any:
    value, arg = (np.asarray(unit.eval(e)) for e in call.args if e is not None)
    for distance in STEPS:
        other, other_arg = exchange(value, distance), exchange(arg, distance)
        take = order.better(other, value) | ((other == value) & (other_arg < arg))
        value, arg = np.where(take, other, value), np.where(take, other_arg, arg)
    return value, arg


def _emit(order: Order, cg: Emitter, call: Call, dest: str | None) -> str:
    assert isinstance(call.type, Tuple)
    operands = [e for e in call.args if e is not None]
    best, arg = cg.fresh("best"), cg.fresh("arg")
    values = [cg.element(e, "i", e.type) for e in operands]
    for name, item in zip((best, arg), call.type.items, strict=True):
        cg.declare(item, name)
    other, other_arg, take = (cg.fresh(n) for n in ("other", "other_arg", "take"))
    with cg.unrolled(registers(call.type.items[0])):
        cg.line(f"{best}[i] = {values[0]};")
        cg.line(f"{arg}[i] = {values[1]};")
        for distance in STEPS:
            with cg.block(""):
                shuffle = f"__shfl_xor_sync(0xffffffffu, %s[i], {distance})"
                cg.line(f"const float {other} = {shuffle % best};")
                cg.line(f"const int {other_arg} = {shuffle % arg};")
                tie = f"{other} == {best}[i] && {other_arg} < {arg}[i]"
                cg.line(f"const bool {take} = {other} {order.sign} {best}[i] || ({tie});")
                cg.line(f"{best}[i] = {take} ? {other} : {best}[i];")
                cg.line(f"{arg}[i] = {take} ? {other_arg} : {arg}[i];")
    return f"{best}, {arg}"


def _cost(call: Call, threads: int) -> Cost:
    assert isinstance(call.type, Tuple)
    n = registers(call.type.items[0]) * threads
    return Cost(alu=n * 10, issue=n * 14 // 32, smem=n * 16)


for _order in ORDERS:
    register(
        Primitive(
            name=f"{_order.name}_quad",
            params=(Param("best"), Param("arg")),
            doc=f"""Partial (best, arg) of ``{_order.name}_cols`` made whole.

Each row gets its {_order.word} value and that value's index, the lowest index on a tie. All four
lanes of a row then agree.""",
            source="PTX ISA, shfl.sync.bfly",
            typing=_typing,
            effects=no_effects,
            meaning=partial(_meaning, _order),
            cost=_cost,
            emit={"": partial(_emit, _order)},
            convergent=True,
        )
    )
