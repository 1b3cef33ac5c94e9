"""``bitcast``: the same 32 bits as another element type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32, U32, DType, numpy_dtype
from cake.ir.nodes import Call
from cake.ir.types import Type, element_dtype
from cake.ops import check
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
from cake.ops.elementwise_facets import fuse
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

_DTYPES = (F32, I32, U32)
_C = {
    (F32, I32): "__float_as_int",
    (F32, U32): "__float_as_uint",
    (I32, F32): "__int_as_float",
    (U32, F32): "__uint_as_float",
    (I32, U32): "(unsigned)",
    (U32, I32): "(int)",
}


def _typing(t: TypingContext, call: Call) -> Type:
    x, to = operand(call, "x"), static(call, "dtype")
    assert x is not None
    source = element_dtype(x.type)
    if source is None or source not in _DTYPES:
        t.fail(f"x must hold f32, i32 or u32, got {check.describe(x)}", x)
    check.in_registers(t, x, "x")
    if to not in _DTYPES or to == source:
        others = ", ".join(d.name for d in _DTYPES if d != source)
        t.fail(f"dtype must be one of {others}, got {to}", operand(call, "dtype"))
    result: Type = replace(x.type, dtype=to)  # type: ignore[type-var]
    return result


def _pair(call: Call) -> tuple[DType, DType]:
    x = call.args[0]
    assert x is not None
    source, to = element_dtype(x.type), element_dtype(call.type)
    assert source is not None
    assert to is not None
    return source, to


def _meaning(unit: Unit, call: Call) -> Any:
    x = call.args[0]
    assert x is not None
    return np.asarray(unit.eval(x)).view(numpy_dtype(_pair(call)[1])).copy()


def _element(cg: Emitter, call: Call, operands: list[str]) -> str:
    return f"{_C[_pair(call)]}({operands[0]})"


def _cost(call: Call, threads: int) -> Cost:
    return Cost()


register(
    Primitive(
        name="bitcast",
        params=(Param("x"), Param("dtype", "static")),
        doc="""The bits of ``x`` (f32, i32 or u32) read as ``dtype``, another of these types.""",
        source="PTX ISA, mov.b32",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": fuse("bitcast", _element)},
        outside_roles=True,
    )
)
