"""What one row of the elementwise table says, and the typing and cost rules all rows share.

The rows themselves are in :mod:`cake.ops.elementwise_rows`, their meaning and emission factories
in :mod:`cake.ops.elementwise_facets`, the numpy functions in :mod:`cake.ops.elementwise_numpy`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from cake.ir.dtypes import BOOL, F32, I32, I64, DType
from cake.ir.nodes import Call, Const, Expr, Static
from cake.ir.types import Type, element_dtype, registers
from cake.ops import check
from cake.ops.base import Cost, Typed, TypingContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Elementwise:
    """One row of the table.

    ``names`` are the operands. ``result`` is the element type: that of the operands, or one of its
    own. ``numpy``: meaning on numpy arrays of the element type. ``c``: C expression from the
    operand dtype and the operands' expressions, each of which is an atom or parenthesised;
    ``device`` are the ``__device__`` functions it calls, as (name, code). ``c_constant`` replaces
    ``c`` where the last operand is a compile-time int; it may decline with None. ``work`` is the
    cost of one lane for f32 and bool, ``int_work`` for 32-bit integers (64-bit ones cost twice
    that).
    ``limit`` rejects compile-time operands that have no result; ``undefined`` is the reason and
    the mask of lanes without one at run time.
    """

    name: str
    names: tuple[str, ...] = ("a", "b")
    admits: tuple[DType, ...]
    result: Literal["same"] | DType = "same"
    numpy: Callable[..., Any]
    c: Callable[[DType, list[str]], str]
    device: tuple[tuple[str, str], ...] = ()
    c_constant: Callable[[str, int], str | None] | None = None
    work: Cost
    int_work: Cost = field(default_factory=lambda: Cost(alu=1))
    limit: Callable[[TypingContext, DType, Expr], None] | None = None
    undefined: tuple[str, Callable[..., Any]] | None = None
    doc: str
    symbol: str | None = None


TABLE: dict[str, Elementwise] = {}
"""Every row by the name of its primitive."""


def row(name: str) -> Elementwise | None:
    """The table's row for a primitive, None if it is not elementwise by table."""
    return TABLE.get(name)


def common_dtype(t: TypingContext, operands: list[Expr]) -> DType:
    """The element type shared by typed operands; i32 widens to i64."""
    found = {d for e in operands if (d := element_dtype(e.type)) is not None}
    if not found:
        values = [e.value for e in operands if isinstance(e, Static | Const)]
        if values and all(isinstance(v, bool) for v in values):
            return BOOL
        return F32 if any(isinstance(v, float) for v in values) else I32
    if found == {I32, I64}:
        return I64
    if len(found) > 1:
        names = ", ".join(sorted(d.name for d in found))
        t.fail(f"operands have different element types: {names}", helps=("cast one of them",))
    return found.pop()


def typing_rule(entry: Elementwise) -> Callable[[TypingContext, Call], Type | Typed]:
    """Operands of one element type that broadcast; ``select`` takes a bool in front of them."""

    def rule(t: TypingContext, call: Call) -> Typed:
        operands = [a for a in call.args if a is not None]
        for e in operands:
            check.in_registers(t, e, "an operand")
        select = entry.name == "select"
        typed = operands[1:] if select else operands
        dtype = common_dtype(t, typed)
        if dtype not in entry.admits:
            admitted = ", ".join(d.name for d in entry.admits)
            t.fail(f"it takes {admitted}, got {dtype}", helps=_remedy(entry, dtype))
        args = [t.coerce(e, dtype) for e in typed]
        if entry.limit is not None:
            entry.limit(t, dtype, args[-1])
        if select:
            args.insert(0, t.coerce(operands[0], BOOL))
        result = dtype if entry.result == "same" else entry.result
        return Typed(check.broadcast(t, args, result), tuple(args))

    return rule


def _remedy(entry: Elementwise, dtype: DType) -> tuple[str, ...]:
    if F32 in entry.admits and dtype.is_float:
        return ("16-bit and 8-bit floats are storage: cast(x, f32) first",)
    if entry.name == "div" and dtype.is_int:
        return ("integers divide with //; or cast to f32 first",)
    if F32 in entry.admits and dtype.is_int:
        return ("cast(x, f32) first",)
    return ()


def cost_rule(entry: Elementwise) -> Callable[[Call, int], Cost]:
    """Lane operations of all registers; a uniform scalar is still computed by every lane."""

    def rule(call: Call, threads: int) -> Cost:
        n = max(1, registers(call.type)) * threads
        operand = call.args[-1]
        dtype = None if operand is None else element_dtype(operand.type)
        work = entry.work
        if dtype is not None and dtype.is_int:
            work = entry.int_work
            n *= 2 if dtype == I64 else 1
        steps = work.fma + work.alu + work.sfu
        return Cost(fma=n * work.fma, alu=n * work.alu, sfu=n * work.sfu, issue=-(-n * steps // 32))

    return rule
