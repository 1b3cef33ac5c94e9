"""Bit counts, permutations and wide products of integers: rows of the elementwise table.

Division by a number that is known only at run time costs dozens of instructions, for i64 about a
hundred. Where one divisor serves many dividends, ``mulhi`` replaces it: with ``m`` and ``s`` chosen
once, ``n // d`` is ``mulhi(n, m) >> s`` (Granlund and Montgomery, "Division by invariant integers
using multiplication", 1994).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import I32, I64, U32, DType
from cake.ops.base import Cost
from cake.ops.c_types import C_TYPE
from cake.ops.elementwise import Elementwise
from cake.ops.elementwise_numpy import bit_width
from cake.ops.elementwise_rows import define

_INT = (I32, U32, I64)
_ALU, _MUL = Cost(alu=1), Cost(fma=1)


# -- numpy -----------------------------------------------------------------------------------------


def _unsigned(x: Any) -> Any:
    """The bits of an integer array in the low end of uint64."""
    x = np.asarray(x)
    return x.view(f"u{x.dtype.itemsize}").astype(np.uint64)


def _bits(x: Any) -> Any:
    """The bits of an integer array, lowest first, along a new last axis."""
    places = np.arange(bit_width(x), dtype=np.uint64)
    return (_unsigned(x)[..., None] >> places) & np.uint64(1)


def popc(x: Any) -> Any:
    """Number of ones."""
    return _bits(x).sum(-1)


def clz(x: Any) -> Any:
    """Number of zeros above the highest one."""
    ones = np.maximum.accumulate(_bits(x)[..., ::-1], axis=-1)
    return bit_width(x) - ones.sum(-1).astype(np.int64)


def brev(x: Any) -> Any:
    """The bits in the opposite order."""
    places = np.arange(bit_width(x), dtype=np.uint64)
    reversed_bits = (_bits(x)[..., ::-1] << places).sum(-1, dtype=np.uint64)
    x = np.asarray(x)
    return reversed_bits.astype(f"u{x.dtype.itemsize}").view(x.dtype)


def byte_perm(a: Any, b: Any, selector: Any) -> Any:
    """prmt.b32: byte i is what nibble i of the selector names; its top bit repeats the sign."""
    both = _unsigned(a) | _unsigned(b) << np.uint64(32)
    result: Any = np.uint64(0)
    for i in range(4):
        nibble = (_unsigned(selector) >> np.uint64(4 * i)) & np.uint64(15)
        byte = (both >> (nibble & np.uint64(7)) * np.uint64(8)) & np.uint64(255)
        sign = np.where(byte >> np.uint64(7), np.uint64(255), np.uint64(0))
        result = result | np.where(nibble >> np.uint64(3), sign, byte) << np.uint64(8 * i)
    return result.astype(np.uint32)


def funnel_left(lo: Any, hi: Any, n: Any) -> Any:
    """shf.l.wrap: the high word of hi:lo shifted left."""
    both = _unsigned(lo) | _unsigned(hi) << np.uint64(32)
    return ((both << (_unsigned(n) & np.uint64(31))) >> np.uint64(32)).astype(np.uint32)


def funnel_right(lo: Any, hi: Any, n: Any) -> Any:
    """shf.r.wrap: the low word of hi:lo shifted right."""
    both = _unsigned(lo) | _unsigned(hi) << np.uint64(32)
    return (both >> (_unsigned(n) & np.uint64(31))).astype(np.uint32)


def mulhi(a: Any, b: Any) -> Any:
    """The high half of the exact product."""
    a, b = np.asarray(a), np.asarray(b)
    exact = a.astype(object) * b.astype(object)
    return np.asarray(exact // 2 ** bit_width(a)).astype(a.dtype)


def mul_wide(a: Any, b: Any) -> Any:
    """The exact product of two i32."""
    return np.asarray(a).astype(np.int64) * np.asarray(b).astype(np.int64)


# -- rows ------------------------------------------------------------------------------------------


def _named(names: dict[DType, str]) -> Any:
    return lambda dtype, x: f"{names[dtype]}({', '.join(x)})"


_PRMT = (
    "prmt",
    """__device__ __forceinline__ unsigned prmt(unsigned a, unsigned b, unsigned selector) {
  unsigned y;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(y) : "r"(a), "r"(b), "r"(selector));
  return y;
}""",
)


def _count(name: str, numpy: Any, doc: str) -> Elementwise:
    c = {I32: f"__{name}", U32: f"__{name}", I64: f"__{name}ll"}
    return Elementwise(
        name=name, names=("a",), admits=_INT, result=I32, numpy=numpy, c=_named(c), work=_ALU,
        int_work=Cost(sfu=1), doc=doc,
    )  # fmt: skip


_TABLE = (
    _count("popc", popc, "Number of ones among the bits of a, as i32."),
    _count("clz", clz, "Number of zeros above the highest one of a, as i32; all bits for 0."),
    Elementwise(
        name="brev", names=("a",), admits=_INT, numpy=brev, work=_ALU, int_work=Cost(sfu=1),
        c=lambda dtype, x: f"(({C_TYPE[dtype]})__brev{'ll' if dtype == I64 else ''}({x[0]}))",
        doc="The bits of a in the opposite order.",
    ),
    Elementwise(
        name="byte_perm", names=("a", "b", "selector"), admits=(U32,), numpy=byte_perm,
        c=_named({U32: "prmt"}), device=(_PRMT,), work=_ALU,
        doc="Four bytes of the eight of a (0 to 3) and b (4 to 7), as u32: nibble i of selector"
        " names byte i; with its top bit set the byte is the sign of the named one, repeated.",
    ),
    Elementwise(
        name="funnel_left", names=("lo", "hi", "n"), admits=(U32,), numpy=funnel_left,
        c=_named({U32: "__funnelshift_l"}), work=_ALU,
        doc="The high 32 bits of hi:lo shifted left by n modulo 32; hi = lo rotates.",
    ),
    Elementwise(
        name="funnel_right", names=("lo", "hi", "n"), admits=(U32,), numpy=funnel_right,
        c=_named({U32: "__funnelshift_r"}), work=_ALU,
        doc="The low 32 bits of hi:lo shifted right by n modulo 32; hi = lo rotates.",
    ),
    Elementwise(
        name="mulhi", admits=_INT, numpy=mulhi, work=_MUL, int_work=Cost(fma=2),
        c=_named({I32: "__mulhi", U32: "__umulhi", I64: "__mul64hi"}),
        doc="The high half of the exact product of a and b. It divides by an invariant d: with"
        " 2^s < d <= 2^(s + 1) and m = 2^(32 + s) // d + 1, n // d is mulhi(n, m) >> s for every"
        " u32 n below 2^31 (Granlund and Montgomery, 1994).",
    ),
    Elementwise(
        name="mul_wide", admits=(I32,), result=I64, numpy=mul_wide, work=_MUL, int_work=_MUL,
        c=lambda dtype, x: f"((long long){x[0]} * {x[1]})",
        doc="The exact product of a and b (i32) as i64; with an i64 added it is one instruction.",
    ),
)  # fmt: skip
for _entry in _TABLE:
    define(_entry)
