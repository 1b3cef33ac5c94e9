"""``cast``: conversion to another element type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from cake.ir.dtypes import F32, I32, DType
from cake.ir.nodes import Call, Static
from cake.ir.types import Type, element_dtype, is_array, registers
from cake.ops import check
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
from cake.ops.c_types import per_word
from cake.ops.conversions import CONVERSIONS, Conversion
from cake.ops.elementwise_facets import fuse
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> Typed:
    x, to = operand(call, "x"), static(call, "dtype")
    assert x is not None
    if not isinstance(to, DType):
        t.fail(f"dtype must be an element type, got {to!r}", operand(call, "dtype"))
    check.in_registers(t, x, "x")
    if isinstance(x, Static):
        x = t.coerce(x, F32 if isinstance(x.value, float) else I32)
    source = element_dtype(x.type)
    assert source is not None
    conversion = CONVERSIONS.get((source, to))
    if conversion is None:
        _refuse(t, source, to)
    if conversion.requires is not None and not getattr(t.target, conversion.requires):
        t.fail(
            f"{t.target.name} has no instruction that converts {source} to {to}",
            code="CK201",
            facts={"target": t.target.name, "capability": conversion.requires},
        )
    n, word = registers(x.type), per_word(to)
    if is_array(x.type) and n % word:
        t.fail(
            f"{n} registers do not fill words of {word} {to} elements",
            x,
            facts={"registers": n, "multiple_of": word},
        )
    result: Type = replace(x.type, dtype=to)  # type: ignore[type-var]
    return Typed(result, (x, *call.args[1:]))


def _refuse(t: TypingContext, source: DType, to: DType) -> NoReturn:
    if source == to:
        t.fail(f"x is {to} already")
    through = (source, F32) in CONVERSIONS and (F32, to) in CONVERSIONS
    helps = (f"convert through f32: cast(cast(x, f32), {to})",) if through else ()
    reachable = ", ".join(b.name for a, b in CONVERSIONS if a == source and b != source)
    t.fail(f"{source} does not convert to {to}, only to {reachable or 'nothing'}", helps=helps)


def _conversion(call: Call) -> Conversion:
    x = call.args[0]
    assert x is not None
    source, to = element_dtype(x.type), element_dtype(call.type)
    assert source is not None
    assert to is not None
    return CONVERSIONS[source, to]


def _meaning(unit: Unit, call: Call) -> Any:
    x = call.args[0]
    assert x is not None
    with np.errstate(all="ignore"):
        return _conversion(call).numpy(unit.eval(x))


def _element(cg: Emitter, call: Call, operands: list[str]) -> str:
    conversion = _conversion(call)
    for name, code in conversion.device:
        cg.helper(name, code)
    return conversion.c(operands[0])


_by_element = fuse("cast", _element)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str | None:
    pack = _conversion(call).pack
    if pack is None or not is_array(call.type):
        return _by_element(cg, call, dest)
    x, dtype = call.args[0], element_dtype(call.type)
    assert x is not None
    assert dtype is not None
    source = cg.array(x)
    cg.helper(*pack)
    name = dest or cg.fresh("cast")
    if dest is None:
        cg.declare(call.type, name)
    n = per_word(dtype)
    elements = ", ".join(f"{source}[{n} * i{f' + {k}' if k else ''}]" for k in range(n))
    with cg.unrolled(registers(call.type) // n):
        cg.line(f"{name}[i] = {pack[0]}({elements});")
    return name


def _cost(call: Call, threads: int) -> Cost:
    conversion = _conversion(call)
    n = registers(call.type) * threads
    if conversion.pack is not None and is_array(call.type):
        n //= 2
    work = conversion.work
    steps = work.alu + work.sfu
    return Cost(alu=n * work.alu, sfu=n * work.sfu, issue=-(-n * steps // 32))


register(
    Primitive(
        name="cast",
        params=(Param("x"), Param("dtype", "static")),
        doc="""``x`` converted to another element type; the shape stays.

* f32 to i32, u32, i64: toward zero, clamped to the range; NaN gives 0 (i64: the smallest value).
* i32, u32, i64 to f32: to nearest even. Integers among each other wrap. bool gives 0 or 1.
* f32 to bf16, f16: to nearest even, overflow to infinity. f32 to e4m3, e5m2: to nearest even,
  clamped to the largest finite value. Arrays are packed by the word.
* f32 to tf32: to nearest, ties away from zero. bf16, f16, e4m3, e5m2, tf32 to f32: exact.""",
        source="PTX ISA, cvt",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        outside_roles=True,
    )
)
