"""Meaning and emission of elementwise primitives.

An elementwise call is *fused*: where another elementwise primitive (or a reduction) consumes it,
its value is computed register by register inside the consumer's loop, so ``q - 2.0 * acc`` is one
loop without temporaries. The emitter's ``element`` asks :func:`element_expression` for it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.nodes import Call, Const
from cake.ir.types import Type, element_dtype, is_array, registers
from cake.ops.base import Emit, Meaning
from cake.ops.c_types import per_word
from cake.ops.elementwise import Elementwise
from cake.ops.findings import UNDEFINED_ARITHMETIC
from cake.ops.values import broadcast_value

if TYPE_CHECKING:
    from cake.ops.emit import Emitter
    from cake.ops.machine import Unit

ElementEmission = Callable[["Emitter", Call, list[str]], str]
"""C expression of one element from those of the operands."""

_FUSED: dict[str, ElementEmission] = {}


def is_fused(call: Call) -> bool:
    """Whether consumers compute this call element by element (``element_expression``).

    Packed results (16- and 8-bit elements) are made by the word, so they are not.
    """
    dtype = element_dtype(call.type)
    return call.op in _FUSED and is_array(call.type) and dtype is not None and per_word(dtype) == 1


def element_expression(cg: Emitter, call: Call, i: str, like: Type) -> str:
    """C expression of register ``i`` of an elementwise call, broadcast to the shape of ``like``.

    ``i`` is a C int; ``like`` is the type whose registers ``i`` counts. Statements that operands
    need are emitted before this returns.
    """
    operands = [cg.element(a, i, like) for a in _operands(call)]
    return _FUSED[call.op](cg, call, operands)


def fuse(name: str, element: ElementEmission) -> Emit:
    """Make ``name`` an elementwise primitive for emission; returns its emission.

    Scalars yield an expression, arrays a loop over the registers into ``dest``.
    """
    _FUSED[name] = element

    def emit(cg: Emitter, call: Call, dest: str | None) -> str:
        if not is_array(call.type):
            return element(cg, call, [cg.scalar(a) for a in _operands(call)])
        # The expression comes first: operands may need statements of their own before the loop.
        value = element_expression(cg, call, "i", call.type)
        name = dest or cg.fresh(call.op)
        if dest is None:
            cg.declare(call.type, name)
        with cg.unrolled(registers(call.type)):
            cg.line(f"{name}[i] = {value};")
        return name

    return emit


def _operands(call: Call) -> list[Any]:
    return [a for a in call.args if a is not None and element_dtype(a.type) is not None]


def emission(entry: Elementwise) -> Emit:
    """Emission of a row of the table."""

    def element(cg: Emitter, call: Call, operands: list[str]) -> str:
        for name, code in entry.device:
            cg.helper(name, code)
        last = call.args[-1]
        assert last is not None
        if entry.c_constant is not None and isinstance(last, Const):
            special = entry.c_constant(operands[0], int(last.value))
            if special is not None:
                return special
        return entry.c(_dtype(last.type), operands)

    return fuse(entry.name, element)


def _dtype(t: Type) -> DType:
    dtype = element_dtype(t)
    assert dtype is not None
    return dtype


def meaning(entry: Elementwise) -> Meaning:
    """Meaning of a row of the table: its numpy function on broadcast operands."""

    def run(unit: Unit, call: Call) -> Any:
        values = [broadcast_value(unit.eval(a), a.type, call.type) for a in _operands(call)]
        with np.errstate(all="ignore"):
            if entry.undefined is not None:
                _check_defined(unit, entry, values)
            function = unit.arithmetic.function(entry.name, entry.numpy)
            result = np.asarray(function(*values))
        return result.astype(numpy_dtype(_dtype(call.type)), copy=False)

    return run


def _check_defined(unit: Unit, entry: Elementwise, values: list[Any]) -> None:
    assert entry.undefined is not None
    reason, where = entry.undefined
    bad = np.asarray(where(*values))
    if not bad.any():
        return
    if bad.ndim:
        bad = bad.reshape(len(bad), -1).any(axis=1) & unit.mask
        if not bad.any():
            return
    unit.fail(
        UNDEFINED_ARITHMETIC,
        f"{entry.name}: {reason}",
        primitive=entry.name,
        threads=int(np.count_nonzero(bad)),
    )
