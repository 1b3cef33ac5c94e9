"""``transpose`` and ``b_operand``: 16-bit fragments turned over within a warp.

A word of a 16-bit acc fragment is a lane's part of an 8x8 block: row ``lane / 4``, two neighbouring
columns. ``movmatrix`` turns a block over; which block a word stands for is a matter of numbering.
A word of a B operand holds two neighbours along K of column ``lane / 4``: it is the turned block.
"""

from __future__ import annotations

from typing import Any

from cake.ir.nodes import Call, Expr
from cake.ir.types import WARP, Fragment
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
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.values import from_matrix, to_matrix

_MOVMATRIX = (
    "movmatrix",
    """__device__ __forceinline__ unsigned movmatrix(unsigned x) {
  unsigned y;
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(y) : "r"(x));
  return y;
}""",
)


def _source(t: TypingContext, call: Call) -> Fragment:
    e, x = check.fragment(t, operand(call, "fragment"), "the operand")
    if x.layout != "acc" or x.dtype.bits != 16:
        t.fail(
            f"it takes a 16-bit fragment of the acc layout, got {x}",
            e,
            helps=("cast(x, bf16) packs an accumulator",) if x.dtype.bits == 32 else (),
        )
    return x


def _columns(t: TypingContext, call: Call, x: Fragment) -> None:
    if x.shape[1] % 16:
        t.fail(
            f"the columns become rows, so they are a multiple of 16, got {x.shape[1]}",
            operand(call, "fragment"),
            facts={"columns": x.shape[1], "multiple_of": 16},
        )


def _transpose_typing(t: TypingContext, call: Call) -> Fragment:
    x = _source(t, call)
    _columns(t, call, x)
    return Fragment(x.dtype, (x.shape[1], x.shape[0]), "acc", 1)


def _operand_typing(t: TypingContext, call: Call) -> Typed:
    x = _source(t, call)
    rows, columns = x.shape
    if fills.flag(t, call, "transposed"):
        _columns(t, call, x)
        rows, columns = columns, rows
    return Typed(Fragment(x.dtype, (rows, columns), "b", 1), call.args)


def _parts(call: Call) -> tuple[Expr, Fragment, Fragment]:
    x = operand(call, "fragment")
    assert x is not None
    assert isinstance(x.type, Fragment)
    assert isinstance(call.type, Fragment)
    return x, x.type, call.type


def _turned(call: Call) -> bool:
    """Whether the result's rows are the operand's columns."""
    return call.op == "transpose" or bool(static(call, "transposed"))


def _meaning(unit: Unit, call: Call) -> Any:
    x, source, result = _parts(call)
    matrix = to_matrix(source, unit.eval(x))
    return from_matrix(result, matrix.T if _turned(call) else matrix)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    x, source, result = _parts(call)
    array = cg.array(x)
    name = dest or cg.fresh("turned")
    if dest is None:
        cg.declare(result, name)
    moves = _turned(call) == (result.layout == "acc")
    move = cg.helper(*_MOVMATRIX) if moves else ""
    r, c = cg.fresh("r"), cg.fresh("c")
    with cg.unrolled(source.shape[0] // 8, r), cg.unrolled(source.shape[1] // 8, c):
        block = f"{array}[{_word(source, r, c)}]"
        to = _word(result, c, r) if _turned(call) else _word(result, r, c)
        cg.line(f"{name}[{to}] = {move}({block});" if moves else f"{name}[{to}] = {block};")
    return name


def _word(t: Fragment, row: str, column: str) -> str:
    """Word of the 8x8 block in block row ``row`` and block column ``column``."""
    return f"({row} / 2 * {t.shape[1] // 8} + {column}) * 2 + {row} % 2"


def _cost(call: Call, threads: int) -> Cost:
    _, source, result = _parts(call)
    words = source.registers // 2
    if _turned(call) != (result.layout == "acc"):
        return Cost()
    return Cost(issue=words * threads // WARP, smem=4 * words * threads)


register(
    Primitive(
        name="transpose",
        params=(Param("fragment"),),
        doc="""The transpose of a 16-bit ``fragment`` (R, C) of a warp, as an acc fragment (C, R).

R and C are multiples of 16. movmatrix turns blocks of 8x8 over, from register to register.""",
        source="PTX ISA, movmatrix",
        typing=_transpose_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="ldmatrix",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
register(
    Primitive(
        name="b_operand",
        params=(Param("fragment"), Param("transposed", "static", False, keyword_only=True)),
        doc="""A 16-bit acc ``fragment`` (K, N) of a warp as the B operand (K, N) of ``mma``.

With ``transposed=True`` the fragment is (N, K) and the operand its transpose: a renaming of
registers without a move, K a multiple of 16. Otherwise 8x8 blocks are turned over by movmatrix. A
product whose result is the B operand of the next one stays in registers.""",
        source="PTX ISA, movmatrix; Matrix Fragments for mma.m16n8k16",
        typing=_operand_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="ldmatrix",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
