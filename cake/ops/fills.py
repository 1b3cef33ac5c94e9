"""What the constructors of register values share: the fill operand and the register budget."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.nodes import Call, Const, Expr
from cake.ir.types import Scalar, Type, element_dtype, registers
from cake.ops import check
from cake.ops.base import Cost, Typed, TypingContext, operand, static
from cake.ops.c_types import per_word
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def typed_dtype(t: TypingContext, call: Call, admitted: Sequence[DType]) -> DType:
    """The ``dtype`` attribute, among those admitted."""
    dtype = static(call, "dtype")
    if not isinstance(dtype, DType):
        t.fail(f"dtype must be an element type, got {dtype!r}", operand(call, "dtype"))
    if dtype not in admitted:
        names = ", ".join(d.name for d in admitted)
        t.fail(f"dtype must be one of {names}, got {dtype}", operand(call, "dtype"))
    return dtype


def multiple(t: TypingContext, value: Any, unit: int, what: str, at: Expr | None) -> int:
    """A positive compile-time int that is a multiple of ``unit``."""
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0 or value % unit:
        t.fail(
            f"{what} must be a positive multiple of {unit}, got {value!r}",
            at,
            facts={"value": value if isinstance(value, int) else repr(value), "multiple_of": unit},
        )
    return value


def flag(t: TypingContext, call: Call, name: str) -> bool:
    """A compile-time truth value."""
    value = static(call, name)
    if not isinstance(value, bool):
        t.fail(f"{name} must be True or False, got {value!r}", operand(call, name))
    return value


def typed_fill(t: TypingContext, call: Call, result: Type) -> Typed:
    """Give ``fill`` the element type, and keep the value within a thread's registers."""
    dtype = element_dtype(result)
    assert dtype is not None
    words = -(-registers(result) * dtype.bits // 32)
    limit = t.target.registers_per_thread_max
    if words > limit:
        t.fail(
            f"{result} takes {words} registers of each thread, the limit is {limit}",
            facts={"registers": words, "limit": limit},
        )
    fill = operand(call, "fill")
    if fill is None:
        return Typed(result, call.args)
    filled = t.coerce(fill, dtype)
    if not isinstance(filled.type, Scalar):
        t.fail(f"fill must be a scalar, got {check.describe(fill)}", fill)
    return Typed(result, tuple(filled if a is fill else a for a in call.args))


def meaning(unit: Unit, call: Call) -> Any:
    """Every register holds the fill, or nothing yet."""
    fill = operand(call, "fill")
    if fill is None:
        return unit.uninitialised(call.type)
    dtype = element_dtype(call.type)
    assert dtype is not None
    value = np.asarray(unit.eval(fill))
    result = np.empty((unit.threads, registers(call.type)), numpy_dtype(dtype))
    result[...] = value[:, None] if value.ndim else value
    return result


def emit(cg: Emitter, call: Call, dest: str | None) -> str:
    """Declare the array unless it exists, and fill it word by word."""
    name = dest or cg.fresh(call.op)
    if dest is None:
        cg.declare(call.type, name)
    fill = operand(call, "fill")
    dtype = element_dtype(call.type)
    if fill is not None and dtype is not None:
        word = _word(cg, fill, dtype)
        with cg.unrolled(registers(call.type) // per_word(dtype)):
            cg.line(f"{name}[i] = {word};")
    return name


def _word(cg: Emitter, fill: Expr, dtype: DType) -> str:
    """The fill as one array element: 16- and 8-bit elements are repeated over the word."""
    repeat = {1: None, 2: 0x10001, 4: 0x1010101}[per_word(dtype)]
    if repeat is None:
        return cg.scalar(fill)
    if isinstance(fill, Const):
        bits = int.from_bytes(np.asarray(fill.value).astype(numpy_dtype(dtype)).tobytes(), "little")
        return f"{bits * repeat:#x}u"
    return f"(unsigned)({cg.scalar(fill)}) * {repeat:#x}u"


def cost(call: Call, threads: int) -> Cost:
    """One move a register, if there is a fill."""
    if operand(call, "fill") is None:
        return Cost()
    n = registers(call.type) * threads
    return Cost(alu=n, issue=n // 32)
