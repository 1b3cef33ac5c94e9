"""Elementwise maths: one table. Scalars, register arrays, fragments, row and column vectors.

f32 arithmetic rounds to nearest even after every operation: ``a * b + c`` has two roundings and
is never contracted (kernels are built with ``-fmad=false``); ``fma`` has one. Subnormals are kept,
except by the functions that say otherwise. ``//`` and ``%`` are floor division and its remainder,
as in Python. Integer results wrap in two's complement in the simulator and in u32; i32 and i64
are C's signed types in the emitted code, so a schedule must not rely on their overflow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, F32, I32, I64, U32, DType
from cake.ir.nodes import Const, Expr
from cake.ops import elementwise_numpy as fn
from cake.ops.base import Cost, Param, Primitive, TypingContext, no_effects, register
from cake.ops.c_types import C_TYPE
from cake.ops.elementwise import TABLE, Elementwise, cost_rule, typing_rule
from cake.ops.elementwise_facets import emission, meaning

_ALL = (F32, I32, U32, I64)
_INT = (I32, U32, I64)
_ONE = ("a",)
_FMA, _ALU, _SFU = Cost(fma=1), Cost(alu=1), Cost(sfu=1)


def define(entry: Elementwise) -> None:
    """Register one row as a primitive."""
    TABLE[entry.name] = entry
    register(
        Primitive(
            name=entry.name,
            params=tuple(Param(n) for n in entry.names),
            doc=entry.doc,
            source="PTX ISA, Arithmetic, Comparison, Logic and Shift Instructions",
            typing=typing_rule(entry),
            effects=no_effects,
            meaning=meaning(entry),
            cost=cost_rule(entry),
            emit={"": emission(entry)},
            outside_roles=True,
        )
    )


def _infix(symbol: str) -> Callable[[DType, list[str]], str]:
    return lambda dtype, x: f"({x[0]} {symbol} {x[1]})"


def _function(names: dict[DType, str]) -> Callable[[DType, list[str]], str]:
    return lambda dtype, x: f"{names[dtype]}({', '.join(x)})"


def _f32(name: str) -> Callable[[DType, list[str]], str]:
    return _function({F32: name})


# -- floor division --------------------------------------------------------------------------------

_FLOOR_DIV = (
    "floor_div",
    """template <typename T>
__device__ __forceinline__ T floor_div(T a, T b) {
  return a / b - T((a % b != 0) & ((a ^ b) < 0));
}""",
)
_FLOOR_MOD = (
    "floor_mod",
    """template <typename T>
__device__ __forceinline__ T floor_mod(T a, T b) {
  T r = a % b;
  return r + ((r != 0) & ((r ^ b) < 0) ? b : T(0));
}""",
)


def _floor(name: str, symbol: str) -> Callable[[DType, list[str]], str]:
    def c(dtype: DType, x: list[str]) -> str:
        if dtype == U32:
            return f"({x[0]} {symbol} {x[1]})"
        return f"{name}<{C_TYPE[dtype]}>({x[0]}, {x[1]})"

    return c


def _shift_down(a: str, b: int) -> str | None:
    """Floor division by a power of two is an arithmetic shift."""
    return f"({a} >> {b.bit_length() - 1})" if b > 0 and b & (b - 1) == 0 else None


def _keep_low(a: str, b: int) -> str | None:
    """The floor remainder by a power of two is a mask."""
    return f"({a} & {b - 1})" if b > 0 and b & (b - 1) == 0 else None


def _no_zero(t: TypingContext, dtype: DType, b: Expr) -> None:
    if isinstance(b, Const) and b.value == 0:
        t.fail("division by zero", b)


def _in_width(t: TypingContext, dtype: DType, b: Expr) -> None:
    if isinstance(b, Const) and not 0 <= b.value < dtype.bits:
        t.fail(
            f"the shift count of {dtype} must be in [0, {dtype.bits}), got {b.value}",
            b,
            facts={"count": b.value, "bits": dtype.bits},
        )


_BY_ZERO = ("integer division by zero", lambda a, b: np.equal(b, 0))
_BAD_SHIFT = (
    "shift count outside [0, bits)",
    lambda a, b: np.less(b, 0) | np.greater_equal(b, fn.bit_width(a)),
)


# -- the table -------------------------------------------------------------------------------------


def _compare(name: str, symbol: str, numpy: Any, admits: tuple[DType, ...] = _ALL) -> Elementwise:
    return Elementwise(
        name=name, admits=admits, result=BOOL, numpy=numpy, c=_infix(symbol), work=_ALU,
        symbol=symbol, doc=f"a {symbol} b as bool; false if an operand is NaN, except for !=.",
    )  # fmt: skip


def _bits(name: str, symbol: str, numpy: Any, doc: str) -> Elementwise:
    return Elementwise(
        name=name, admits=_INT, numpy=numpy, c=_infix(symbol), work=_ALU, symbol=symbol,
        doc=doc,
    )  # fmt: skip


_ARITHMETIC = (
    Elementwise(
        name="add", admits=_ALL, numpy=np.add, c=_infix("+"), work=_FMA, symbol="+",
        doc="a + b; f32 rounds to nearest even.",
    ),
    Elementwise(
        name="sub", admits=_ALL, numpy=np.subtract, c=_infix("-"), work=_FMA, symbol="-",
        doc="a - b; f32 rounds to nearest even.",
    ),
    Elementwise(
        name="mul", admits=_ALL, numpy=np.multiply, c=_infix("*"), work=_FMA,
        int_work=_FMA, symbol="*", doc="a * b; f32 rounds to nearest even.",
    ),
    Elementwise(
        name="div", admits=(F32,), numpy=np.divide, c=_f32("__fdiv_rn"),
        work=Cost(fma=8, sfu=1), symbol="/",
        doc="a / b in f32, correctly rounded. rcp(b) * a is faster and less exact.",
    ),
    Elementwise(
        name="floordiv", admits=_INT, numpy=np.floor_divide, c=_floor("floor_div", "/"),
        device=(_FLOOR_DIV,), c_constant=_shift_down, work=Cost(), int_work=Cost(alu=20, sfu=2),
        limit=_no_zero, undefined=_BY_ZERO, symbol="//",
        doc="Floor of a / b over integers, as in Python; b must not be 0.",
    ),
    Elementwise(
        name="mod", admits=_INT, numpy=np.remainder, c=_floor("floor_mod", "%"),
        device=(_FLOOR_MOD,), c_constant=_keep_low, work=Cost(), int_work=Cost(alu=22, sfu=2),
        limit=_no_zero, undefined=_BY_ZERO, symbol="%",
        doc="a - b * (a // b) over integers, as in Python: it has the sign of b; b must not be 0.",
    ),
    Elementwise(
        name="neg", names=_ONE, admits=(F32, I32, I64), numpy=np.negative,
        c=lambda dtype, x: f"(- {x[0]})", work=_FMA, symbol="-", doc="-a.",
    ),
    Elementwise(
        name="abs", names=_ONE, admits=(F32, I32, I64), numpy=np.abs,
        c=_function({F32: "fabsf", I32: "abs", I64: "llabs"}), work=_ALU,
        doc="Absolute value of a.",
    ),
    Elementwise(
        name="min", admits=_ALL, numpy=fn.minimum,
        c=_function({F32: "fminf", I32: "min", U32: "umin", I64: "llmin"}), work=_ALU,
        doc="The smaller of a and b. f32 as PTX min: a NaN loses against a number; -0.0 < +0.0.",
    ),
    Elementwise(
        name="max", admits=_ALL, numpy=fn.maximum,
        c=_function({F32: "fmaxf", I32: "max", U32: "umax", I64: "llmax"}), work=_ALU,
        doc="The larger of a and b. f32 as PTX max: a NaN loses against a number; -0.0 < +0.0.",
    ),
    Elementwise(
        name="fma", names=("a", "b", "c"), admits=(F32,), numpy=fn.fma, c=_f32("__fmaf_rn"),
        work=_FMA, doc="a * b + c in f32 with one rounding.",
    ),
    Elementwise(
        name="floor", names=_ONE, admits=(F32,), numpy=np.floor, c=_f32("floorf"), work=_SFU,
        doc="Largest integer not above a, as f32.",
    ),
    Elementwise(
        name="ceil", names=_ONE, admits=(F32,), numpy=np.ceil, c=_f32("ceilf"), work=_SFU,
        doc="Smallest integer not below a, as f32.",
    ),
    Elementwise(
        name="rint", names=_ONE, admits=(F32,), numpy=np.rint, c=_f32("rintf"), work=_SFU,
        doc="The integer nearest to a, as f32; ties go to the even one.",
    ),
    Elementwise(
        name="trunc", names=_ONE, admits=(F32,), numpy=np.trunc, c=_f32("truncf"), work=_SFU,
        doc="The integer part of a, as f32.",
    ),
)  # fmt: skip

_LOGIC = (
    _compare("lt", "<", np.less),
    _compare("le", "<=", np.less_equal),
    _compare("gt", ">", np.greater),
    _compare("ge", ">=", np.greater_equal),
    _compare("eq", "==", np.equal, (*_ALL, BOOL)),
    _compare("ne", "!=", np.not_equal, (*_ALL, BOOL)),
    Elementwise(
        name="and_", admits=(BOOL,), numpy=np.logical_and, c=_infix("&&"), work=_ALU,
        symbol="and", doc="Both a and b hold. Operands are values: both are evaluated.",
    ),
    Elementwise(
        name="or_", admits=(BOOL,), numpy=np.logical_or, c=_infix("||"), work=_ALU,
        symbol="or", doc="a or b holds, or both. Operands are values: both are evaluated.",
    ),
    Elementwise(
        name="not_", names=_ONE, admits=(BOOL,), numpy=np.logical_not,
        c=lambda dtype, x: f"(!{x[0]})", work=_ALU, symbol="not", doc="a does not hold.",
    ),
    Elementwise(
        name="select", names=("cond", "a", "b"), admits=(*_ALL, BOOL), numpy=np.where,
        c=lambda dtype, x: f"({x[0]} ? {x[1]} : {x[2]})", work=_ALU,
        doc="a where cond holds, else b. Operands are values: both are evaluated.",
    ),
)  # fmt: skip

_BITWISE = (
    _bits("bitand", "&", np.bitwise_and, "Bitwise and of a and b."),
    _bits("bitor", "|", np.bitwise_or, "Bitwise or of a and b."),
    _bits("bitxor", "^", np.bitwise_xor, "Bitwise exclusive or of a and b."),
    Elementwise(
        name="shl", admits=_INT, numpy=np.left_shift, c=_infix("<<"), work=_ALU,
        limit=_in_width, undefined=_BAD_SHIFT, symbol="<<",
        doc="a * 2^b; b must be in [0, bits).",
    ),
    Elementwise(
        name="shr", admits=_INT, numpy=np.right_shift, c=_infix(">>"), work=_ALU,
        limit=_in_width, undefined=_BAD_SHIFT, symbol=">>",
        doc="Floor of a / 2^b: arithmetic for i32 and i64, logical for u32; b in [0, bits).",
    ),
)  # fmt: skip

for _entry in (*_ARITHMETIC, *_LOGIC, *_BITWISE):
    define(_entry)
