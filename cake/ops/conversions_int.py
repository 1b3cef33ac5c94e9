"""Conversions of integers and truth values, among each other and from and to f32."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, F32, I8, I32, I64, U8, U16, U32, DType, numpy_dtype
from cake.ops.base import Cost
from cake.ops.c_types import C_TYPE
from cake.ops.conversions import Conversion, Function, Mode, Row, Table, call_of

_ALU, _SFU = Cost(alu=1), Cost(sfu=1)
_ROUND: dict[str, tuple[Callable[[Any], Any], str]] = {
    "rz": (np.trunc, "rz"),
    "rn": (np.rint, "rn"),
    "rm": (np.floor, "rd"),
    "rp": (np.ceil, "ru"),
}
"""PTX's rounding modes: the numpy function and CUDA's suffix."""
_CUDA_NAME = {I32: "int", U32: "uint", I64: "ll"}
NARROW = {I8: "s8", U8: "u8"}


# -- numpy -----------------------------------------------------------------------------------------


def wrapped(dtype: DType, x: Any) -> Any:
    """Modulo 2^bits; truth values count as 0 and 1."""
    return np.asarray(x).astype(numpy_dtype(dtype))


def clamped(dtype: DType, x: Any) -> Any:
    """An integer within the range of ``dtype``."""
    limits = np.iinfo(numpy_dtype(dtype))
    wide = np.asarray(x).astype(np.int64)
    return np.clip(wide, limits.min, limits.max).astype(numpy_dtype(dtype))


def rounded(dtype: DType, mode: str, x: Any) -> Any:
    """f32 to an integer, clamped; NaN gives 0, for 64 bits the smallest value (cvt.rni, .rzi)."""
    limits = np.iinfo(numpy_dtype(dtype))
    low, high = int(limits.min), int(limits.max)
    wide = _ROUND[mode][0](np.asarray(x).astype(np.float64))
    # float(high) may round up to a power of two, which is beyond the range already.
    over = wide >= -float(low) if low else wide > float(high)
    inside = ~over & (wide >= float(low))
    whole = np.where(inside, wide, 0).astype(numpy_dtype(dtype))
    result = np.where(over, high, np.where(wide < float(low), low, whole))
    nan = low if dtype == I64 else 0
    return np.where(np.isnan(wide), nan, result).astype(numpy_dtype(dtype))


def to_float(mode: str, x: Any) -> Any:
    """An integer to f32, to nearest even or toward zero."""
    x = np.asarray(x)
    y = x.astype(np.float32)
    if mode == "rn":
        return y
    top = np.float32(2.0**63)
    back = np.where(np.abs(y) < top, y, 0).astype(np.int64)
    wide = x.astype(np.int64)
    inside = (np.abs(y) < top) & (np.abs(back) > np.abs(wide))
    beyond = inside | (y == top) | ((y == -top) & (wide > np.iinfo(np.int64).min))
    return np.where(beyond, np.nextafter(y, np.float32(0)), y)


# -- CUDA ------------------------------------------------------------------------------------------


def _clamp(dtype: DType, source: DType) -> tuple[Callable[[str], str], tuple[Function, ...]]:
    """C expression of an integer clamped to 8 bits, and the function it calls."""
    if source == U32:
        return lambda x: f"((unsigned char)umin({x}, {np.iinfo(numpy_dtype(dtype)).max}u))", ()
    name = f"saturate_{NARROW[dtype]}"
    code = f"""__device__ __forceinline__ unsigned char {name}(int x) {{
  int y;
  asm("cvt.sat.{NARROW[dtype]}.s32 %0, %1;" : "=r"(y) : "r"(x));
  return (unsigned char)y;
}}"""
    return call_of(name), ((name, code),)


def _pack_bytes(name: str, source: str, parts: str, *, sat: str | None) -> Function:
    """Four elements as one word; ``parts`` makes the 32-bit integer of an element ``x``."""
    x = [parts.format(x=f"x{i}") for i in range(4)]
    if sat is None:
        body = f"""  const unsigned lo = __byte_perm({x[0]}, {x[1]}, 0x0040);
  const unsigned hi = __byte_perm({x[2]}, {x[3]}, 0x0040);
  return __byte_perm(lo, hi, 0x5410);"""
    else:
        body = f"""  unsigned y;
  asm("{{.reg .b32 hi; cvt.pack.sat.{sat}.s32.b32 hi, %4, %3, 0;"
      " cvt.pack.sat.{sat}.s32.b32 %0, %2, %1, hi;}}"
      : "=r"(y) : "r"({x[0]}), "r"({x[1]}), "r"({x[2]}), "r"({x[3]}));
  return y;"""
    arguments = ", ".join(f"{source} x{i}" for i in range(4))
    return name, f"__device__ __forceinline__ unsigned {name}({arguments}) {{\n{body}\n}}"


def _pack_halves(name: str, source: str) -> Function:
    code = f"""__device__ __forceinline__ unsigned {name}({source} x0, {source} x1) {{
  return __byte_perm(x0, x1, 0x5410);
}}"""
    return name, code


# -- rows ------------------------------------------------------------------------------------------


def _among_integers(source: DType, to: DType) -> Row:
    """Wrapping; C converts as the GPU does."""
    if source == to:
        return {Mode(): Conversion(numpy=partial(wrapped, to), c=lambda x: x, work=Cost())}
    work = Cost(alu=2 if I64 in (source, to) else 1)
    c = C_TYPE[to]
    return {Mode(): Conversion(numpy=partial(wrapped, to), c=lambda x: f"({c}){x}", work=work)}


def _to_byte(source: DType, to: DType) -> Row:
    """i32 or u32 to 8 bits: wrapping, or clamped."""
    clamp, device = _clamp(to, source)
    ptx, c = NARROW[to], C_TYPE[source]
    unsigned = source == U32
    limit = np.iinfo(numpy_dtype(to)).max
    return {
        Mode(): Conversion(
            numpy=partial(wrapped, to),
            c=lambda x: f"((unsigned char){x})",
            pack=_pack_bytes(f"pack_bytes_{c}", c, "{x}", sat=None),
            work=_ALU,
        ),
        Mode(None, True): Conversion(
            numpy=partial(clamped, to),
            c=clamp,
            device=device,
            pack=_pack_bytes(
                f"pack_{ptx}_sat_{c}",
                c,
                f"umin({{x}}, {limit}u)" if unsigned else "{x}",
                sat=None if unsigned else ptx,
            ),
            work=_ALU,
        ),
    }


def _from_byte(source: DType, to: DType) -> Row:
    """Exact: a byte is its bits in an unsigned char, so a signed one is named as such."""
    byte = "signed char" if source == I8 else "unsigned char"

    def c(x: str) -> str:
        value = f"({byte})({x})"
        return f"__int2float_rn({value})" if to == F32 else f"(({C_TYPE[to]})({value}))"

    work = _SFU if to == F32 else _ALU
    return {Mode(): Conversion(numpy=partial(wrapped, to), c=c, work=work)}


def _half_word(source: DType) -> Row:
    """i32 or u32 to u16, wrapping."""
    c = C_TYPE[source]
    return {
        Mode(): Conversion(
            numpy=partial(wrapped, U16),
            c=lambda x: f"((unsigned short){x})",
            pack=_pack_halves(f"pack_halves_{c}", c),
            work=_ALU,
        )
    }


def _from_float(to: DType) -> Row:
    """f32 to 32 or 64 bits, clamped."""
    work = Cost(sfu=4) if to == I64 else _SFU
    return {
        Mode(mode): Conversion(
            numpy=partial(rounded, to, mode),
            c=call_of(f"__float2{_CUDA_NAME[to]}_{cuda}"),
            work=work,
        )
        for mode, (_, cuda) in _ROUND.items()
    }


def _after(outer: Callable[[str], str], inner: str) -> Callable[[str], str]:
    return lambda x: outer(f"{inner}({x})")


def _float_to_byte(to: DType) -> Row:
    """f32 to 8 bits, clamped: by way of i32, whose range holds that of the result."""
    clamp, device = _clamp(to, I32)
    return {
        Mode(mode): Conversion(
            numpy=partial(rounded, to, mode),
            c=_after(clamp, f"__float2int_{cuda}"),
            device=device,
            pack=_pack_bytes(
                f"pack_{NARROW[to]}_{mode}", "float", f"__float2int_{cuda}({{x}})", sat=NARROW[to]
            ),
            work=Cost(sfu=1, alu=1),
        )
        for mode, (_, cuda) in _ROUND.items()
    }


def _to_float(source: DType) -> Row:
    work = Cost(sfu=4) if source == I64 else _SFU
    return {
        Mode(mode): Conversion(
            numpy=partial(to_float, mode),
            c=call_of(f"__{_CUDA_NAME[source]}2float_{mode}"),
            work=work,
        )
        for mode in ("rn", "rz")
    }


_WIDE = (I32, U32, I64)
INTEGERS: Table = {
    **{(a, b): _among_integers(a, b) for a in (*_WIDE, BOOL) for b in _WIDE},
    **{(F32, d): _from_float(d) for d in _WIDE},
    **{(d, F32): _to_float(d) for d in _WIDE},
    **{(a, b): _to_byte(a, b) for a in (I32, U32) for b in NARROW},
    **{(a, b): _from_byte(a, b) for a in NARROW for b in (I32, U32, F32)},
    **{(F32, d): _float_to_byte(d) for d in NARROW},
    **{(d, U16): _half_word(d) for d in (I32, U32)},
    **{(U16, d): _among_integers(U16, d) for d in (I32, U32)},
    (BOOL, F32): _among_integers(BOOL, F32),
}
"""Conversions that begin or end at an integer, by (source, result)."""
