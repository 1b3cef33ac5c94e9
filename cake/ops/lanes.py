"""``lanes``: the registers that each thread holds of a fragment or vector."""

from __future__ import annotations

from typing import Any

from cake.ir.nodes import Call, VarRef
from cake.ir.types import ColVector, Fragment, RegArray, RowVector
from cake.ops import check
from cake.ops.base import Cost, Param, Primitive, TypingContext, no_effects, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> RegArray:
    x = call.args[0]
    assert x is not None
    if not isinstance(x.type, Fragment | RowVector | ColVector):
        t.fail(f"it opens a fragment or a row or column vector, got {check.describe(x)}", x)
    if not isinstance(x, VarRef):
        t.fail("it opens a variable", x, helps=("assign the value to a name first",))
    return RegArray(x.type.dtype, x.type.registers)


def _meaning(unit: Unit, call: Call) -> Any:
    x = call.args[0]
    assert x is not None
    return unit.registers(x, read=False)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x = call.args[0]
    assert x is not None
    return cg.array(x)


def _cost(call: Call, threads: int) -> Cost:
    return Cost()


register(
    Primitive(
        name="lanes",
        params=(Param("x"),),
        doc="""The registers of a fragment or vector variable as an array that aliases it.

``lanes(x)[i]`` is register i of the executing thread, in the order of the layout; writing it
changes ``x``. Rows and columns of a register: ``cake.ir.fragments``.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16; Register Fragments for wgmma.m64nNk16",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
