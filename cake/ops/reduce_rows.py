"""``reduce_rows``: each lane folds the columns that it holds of every row."""

from __future__ import annotations

from functools import lru_cache, reduce
from typing import Any

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import Fragment, RowVector
from cake.ops import check, folds
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
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def acc_fragment(
    t: TypingContext, call: Call, name: str, dtypes: tuple[Any, ...] = folds.DTYPES
) -> Fragment:
    """An operand that is an accumulator fragment of one of ``dtypes``."""
    e, fragment = check.fragment(t, operand(call, name), name)
    if fragment.layout != "acc":
        t.fail(f"{name} must have the acc layout, got {fragment}", e)
    if fragment.dtype not in dtypes:
        admitted = ", ".join(d.name for d in dtypes)
        t.fail(f"{name} must hold {admitted}, got {fragment.dtype}", e)
    return fragment


@lru_cache(maxsize=64)
def by_row(t: Fragment) -> Any:
    """Registers of each row of a lane, columns ascending: int array (row registers, columns)."""
    atoms = t.shape[1] // 8
    row, c = np.arange(t.registers * 4 // t.shape[1])[:, None], np.arange(2 * atoms)[None, :]
    return ((row // 2) * atoms + c // 2) * 4 + (row % 2) * 2 + c % 2


def row_element(t: Fragment, row: str, c: str) -> str:
    """C form of :func:`by_row`: register of the lane's column number ``c`` of row ``row``."""
    return f"({row} / 2 * {t.shape[1] // 8} + {c} / 2) * 4 + {row} % 2 * 2 + {c} % 2"


def _typing(t: TypingContext, call: Call) -> Typed:
    fragment = acc_fragment(t, call, "fragment")
    folds.typed_op(t, call)
    result = RowVector(fragment.dtype, fragment.shape[0], fragment.warps, True)
    return Typed(result, call.args)


def _parts(call: Call) -> tuple[Any, Fragment, str]:
    x = operand(call, "fragment")
    assert x is not None
    assert isinstance(x.type, Fragment)
    return x, x.type, static(call, "op")


def _meaning(unit: Unit, call: Call) -> Any:
    x, t, op = _parts(call)
    columns = np.moveaxis(unit.eval(x)[:, by_row(t)], -1, 0)
    return reduce(lambda a, b: folds.combine(op, a, b), columns).copy()


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, t, op = _parts(call)
    name, r, c = dest or cg.fresh(f"row_{op}"), cg.fresh("r"), cg.fresh("c")
    if dest is None:
        cg.declare(call.type, name)
    first = cg.element(x, row_element(t, r, "0"), t)
    rest = cg.element(x, row_element(t, r, f"({c} + 1)"), t)
    with cg.unrolled(t.registers * 4 // t.shape[1], r):
        cg.line(f"{name}[{r}] = {first};")
        with cg.unrolled(t.shape[1] // 4 - 1, c):
            cg.line(f"{name}[{r}] = {folds.c_combine(op, t.dtype, f'{name}[{r}]', rest)};")
    return name


def _cost(call: Call, threads: int) -> Cost:
    _, t, op = _parts(call)
    n = t.registers * threads
    fma = op == "sum" and t.dtype.is_float
    return Cost(fma=n if fma else 0, alu=0 if fma else n, issue=n // 32)


register(
    Primitive(
        name="reduce_rows",
        params=(Param("fragment"), Param("op", "static")),
        doc="""The fold of each row over the columns that a lane holds, as a partial row vector.

``op`` is "sum", "min" or "max" (NaN loses against numbers), over f32, i32 or u32. A lane starts
with its first column and goes on in ascending order, so f32 sums round alike in simulator and GPU.
``reduce_quad`` completes the rows.""",
        source="PTX ISA, Matrix Fragments for mma.m16n8k16: a row lies in the four lanes of a quad",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
