"""``cast``: conversion to another element type."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NoReturn

import numpy as np

from cake.ir.dtypes import F32, I32, DType
from cake.ir.nodes import Call, Static
from cake.ir.types import Fragment, Type, element_dtype, is_array, registers
from cake.ops import check, fills
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
from cake.ops.conversions import Conversion, Row, chosen
from cake.ops.conversions_float import FLOATS
from cake.ops.conversions_int import INTEGERS
from cake.ops.elementwise_facets import fuse
from cake.ops.emit import Emitter
from cake.ops.machine import Unit

CONVERSIONS = FLOATS | INTEGERS
"""How to convert, by (source, result). f32 is the hub: 16- and 8-bit floats convert through it."""

BY_WIDTH = ("a_ldmatrix", "b_ldmatrix")
"""Layouts that depend on the width of the elements."""


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
    row = CONVERSIONS.get((source, to))
    if row is None:
        _refuse(t, source, to)
    conversion = _mode(t, call, row, f"{source} to {to}")
    if conversion.requires is not None and not getattr(t.target, conversion.requires):
        t.fail(
            f"{t.target.name} has no instruction that converts {source} to {to}",
            code="CK201",
            facts={"target": t.target.name, "capability": conversion.requires},
        )
    if isinstance(x.type, Fragment) and x.type.layout in BY_WIDTH and source.bits != to.bits:
        t.fail(
            f"the {x.type.layout} layout of {source} is not that of {to}",
            x,
            helps=(f"cast the acc fragment first: a_operand(cast(x, {to}))",),
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


def _mode(t: TypingContext, call: Call, row: Row, what: str) -> Conversion:
    """The conversion that ``round`` and ``saturate`` ask for."""
    round, saturate = static(call, "round"), fills.flag(t, call, "saturate")
    rounds = list(dict.fromkeys(m.round for m in row if m.round is not None))
    if round is not None and round not in rounds:
        admitted = f"round is one of {', '.join(rounds)}" if rounds else "nothing is rounded"
        t.fail(f"{what}: {admitted}, got {round!r}", operand(call, "round"))
    conversion = chosen(row, round, saturate)
    if conversion is None:
        t.fail(
            f"{what} has no form with saturate=True",
            operand(call, "saturate"),
            helps=("floats clamp to the range of an integer without it",),
        )
    return conversion


def _refuse(t: TypingContext, source: DType, to: DType) -> NoReturn:
    if source == to:
        t.fail(f"x is {to} already")
    hubs = (I32, F32) if source.is_int and to.is_int else (F32, I32)
    through = [d for d in hubs if (source, d) in CONVERSIONS and (d, to) in CONVERSIONS]
    helps = (f"convert through {through[0]}: cast(cast(x, {through[0]}), {to})",) if through else ()
    reachable = ", ".join(b.name for a, b in CONVERSIONS if a == source and b != source)
    t.fail(f"{source} does not convert to {to}, only to {reachable or 'nothing'}", helps=helps)


def _conversion(call: Call) -> Conversion:
    x = call.args[0]
    assert x is not None
    source, to = element_dtype(x.type), element_dtype(call.type)
    assert source is not None
    assert to is not None
    conversion = chosen(CONVERSIONS[source, to], static(call, "round"), static(call, "saturate"))
    assert conversion is not None
    return conversion


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
        params=(
            Param("x"),
            Param("dtype", "static"),
            Param("round", "static", None, keyword_only=True),
            Param("saturate", "static", False, keyword_only=True),
        ),
        doc="""``x`` converted to the element type ``dtype``; the shape stays.

``round`` is a rounding mode of PTX: rn (to nearest even), rz (toward zero), rm (down), rp (up).

* f32 to i32, u32, i64, i8, u8: rz by itself, rn, rm, rp; clamped to the range; NaN gives 0 (i64:
  the smallest value). i32, u32, i64 to f32: rn by itself, rz. i8, u8 to f32, i32, u32: exact.
* Integers among each other wrap; i32, u32 to i8, u8 clamp with ``saturate=True``. bool gives 0, 1.
* f32 to bf16, f16: rn by itself, rz; overflow to infinity, with ``saturate=True`` to the largest
  finite value. f32 to e4m3, e5m2: rn, always clamped to the largest finite value.
* f32 to tf32: to nearest, ties away from zero (rna). bf16, f16, e4m3, e5m2, tf32 to f32: exact.

Arrays of 8- and 16-bit elements are packed by the word.""",
        source="PTX ISA, cvt",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        outside_roles=True,
    )
)
