"""Elementwise maths: one table. Scalars, register arrays, fragments, row and column vectors.

f32 arithmetic rounds to nearest even after every operation: ``a * b + c`` has two roundings and
is never contracted (kernels are built with ``-fmad=false``); ``fma`` has one. ``//`` and ``%`` are
floor division and its remainder, as in Python. Approximate functions (exp2, log2, rcp, rsqrt,
sqrt, tanh) are the PTX ``.approx`` forms, within the error the PTX ISA states.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from cake.ir.dtypes import BOOL, F32, I32, I64, U32, DType
from cake.ir.nodes import Call, Const, Expr, Static
from cake.ir.types import Scalar, Type, element_dtype, registers
from cake.ops import check
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    register,
)

Pipe = Literal["fma", "alu", "sfu"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """One row of the table.

    ``numpy``: meaning on numpy arrays of the element type. ``c``: C expression from operand
    expressions and the operand dtype. ``pipe``: which pipe executes it.
    """

    name: str
    arity: int
    admits: tuple[DType, ...]
    result: Literal["same", "bool"]
    pipe: Pipe
    numpy: Callable[..., Any]
    c: Callable[[DType, list[str]], str]
    doc: str
    symbol: str | None = None


_TABLE: dict[str, Elementwise] = {}


def row(name: str) -> Elementwise | None:
    """The table's row for a primitive, None if it is not elementwise by table."""
    return _TABLE.get(name)


def common_dtype(t: TypingContext, operands: list[Expr]) -> DType:
    """The element type shared by typed operands; i32 widens to i64."""
    found = {d for e in operands if (d := element_dtype(e.type)) is not None}
    if not found:
        values = [e.value for e in operands if isinstance(e, Static | Const)]
        if all(isinstance(v, bool) for v in values):
            return BOOL
        return F32 if any(isinstance(v, float) for v in values) else I32
    if found == {I32, I64}:
        return I64
    if len(found) > 1:
        names = ", ".join(sorted(d.name for d in found))
        t.fail(f"operands have different element types: {names}", helps=("cast one of them",))
    return found.pop()


def _typing(entry: Elementwise) -> Callable[[TypingContext, Call], Type | Typed]:
    def rule(t: TypingContext, call: Call) -> Typed:
        operands = [a for a in call.args if a is not None]
        select = entry.name == "select"
        typed = operands[1:] if select else operands
        dtype = common_dtype(t, typed)
        if dtype not in entry.admits:
            admitted = ", ".join(d.name for d in entry.admits)
            t.fail(
                f"{entry.name} takes {admitted}, got {dtype}",
                helps=("cast to f32 first",) if dtype.is_float else (),
            )
        args = [t.coerce(e, dtype) for e in typed]
        if select:
            args.insert(0, t.coerce(operands[0], BOOL))
        result = BOOL if entry.result == "bool" else dtype
        return Typed(check.broadcast(t, args, result), tuple(args))

    return rule


def _cost(pipe: Pipe) -> Callable[[Call, int], Cost]:
    def rule(call: Call, threads: int) -> Cost:
        n = registers(call.type) * threads
        if isinstance(call.type, Scalar) and not call.type.varying:
            n = threads
        return Cost(
            fma=n if pipe == "fma" else 0,
            alu=n if pipe == "alu" else 0,
            sfu=n if pipe == "sfu" else 0,
            issue=(n + 31) // 32,
        )

    return rule


def define(entry: Elementwise) -> None:
    """Register one row as a primitive."""
    from cake.ops.elementwise_facets import emission, meaning

    _TABLE[entry.name] = entry
    names = ("cond", "a", "b") if entry.name == "select" else ("a", "b", "c")
    register(
        Primitive(
            name=entry.name,
            params=tuple(Param(n) for n in names[: entry.arity]),
            doc=entry.doc,
            source="PTX ISA, Arithmetic, Comparison and Logic instructions",
            typing=_typing(entry),
            effects=no_effects,
            meaning=meaning(entry),
            cost=_cost(entry.pipe),
            emit={"": emission(entry)},
            outside_roles=True,
        )
    )


_ALL = (F32, I32, U32, I64)
_INT = (I32, U32, I64)
