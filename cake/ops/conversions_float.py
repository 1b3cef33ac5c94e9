"""Conversions between float formats; f32 is the hub."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, E4M3, E5M2, F16, F32, TF32, DType, numpy_dtype
from cake.ops.base import Cost
from cake.ops.conversions import (
    Conversion,
    Function,
    Mode,
    Row,
    Table,
    call_of,
    device_function,
)

_ALU = Cost(alu=1)
_LARGEST = {
    F16: 65504.0,
    BF16: float.fromhex("0x1.fep127"),
    E4M3: 448.0,
    E5M2: 57344.0,
}
"""The largest finite value of each narrow format."""


# -- numpy -----------------------------------------------------------------------------------------


def exact(x: Any) -> Any:
    """To f32: every narrow float is one."""
    return np.asarray(x).astype(np.float32)


def round_to(dtype: DType, mode: Mode, x: Any) -> Any:
    """f32 to a narrow format; NaN stays NaN."""
    x = np.asarray(x, np.float32)
    if mode.saturate:
        x = np.clip(x, -_LARGEST[dtype], _LARGEST[dtype])
    y = x.astype(numpy_dtype(dtype))
    if mode.round == "rz":
        # The bits of a float order its magnitude, so the next value towards zero is one below.
        bits = y.view(f"u{dtype.bytes}")
        beyond = np.abs(y.astype(np.float32)) > np.abs(x)
        y = (bits - beyond.astype(bits.dtype)).view(numpy_dtype(dtype))
    return y


def round_tf32(x: Any) -> Any:
    """cvt.rna.tf32: 10 bits of fraction, ties away from zero."""
    x = np.asarray(x, np.float32)
    rounded = (x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


# -- CUDA ------------------------------------------------------------------------------------------


def _pack2(name: str, instruction: str) -> Function:
    return (
        name,
        f"""__device__ __forceinline__ unsigned {name}(float x0, float x1) {{
  unsigned y;
  asm("{instruction} %0, %1, %2;" : "=r"(y) : "f"(x1), "f"(x0));
  return y;
}}""",
    )


def _pack4(name: str, ptx: str) -> Function:
    return (
        name,
        f"""__device__ __forceinline__ unsigned {name}(float x0, float x1, float x2, float x3) {{
  unsigned y;
  asm("{{.reg .b16 lo, hi; cvt.rn.satfinite.{ptx}x2.f32 lo, %2, %1;"
      " cvt.rn.satfinite.{ptx}x2.f32 hi, %4, %3; mov.b32 %0, {{lo, hi}};}}"
      : "=r"(y) : "f"(x0), "f"(x1), "f"(x2), "f"(x3));
  return y;
}}""",
    )


def _narrow8(name: str, ptx: str) -> Function:
    return (
        name,
        f"""__device__ __forceinline__ unsigned char {name}(float x) {{
  unsigned short y;
  asm("cvt.rn.satfinite.{ptx}x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return (unsigned char)y;
}}""",
    )


def _widen8(name: str, ptx: str) -> Function:
    return (
        name,
        f"""__device__ __forceinline__ float {name}(unsigned short x) {{
  float y;
  asm("{{.reg .b32 pair; .reg .b16 lo, hi; cvt.rn.f16x2.{ptx}x2 pair, %1;"
      " mov.b32 {{lo, hi}}, pair; cvt.f32.f16 %0, lo;}}" : "=f"(y) : "h"(x));
  return y;
}}""",
    )


_TO_TF32: Function = (
    "to_tf32",
    """__device__ __forceinline__ float to_tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}""",
)
_FROM_F16 = device_function("from_f16", "float", "unsigned short", "cvt.f32.f16", "fh")


# -- rows ------------------------------------------------------------------------------------------


def _to_16_bits(dtype: DType) -> Row:
    """f32 to bf16 or f16, to nearest even or toward zero; overflow to infinity, or clamped."""
    row = {}
    for round in ("rn", "rz"):
        for saturate in (False, True):
            mode = Mode(round, saturate)
            ptx = f"cvt.{round}{'.satfinite' if saturate else ''}.{dtype}"
            suffix = ("_rz" if round == "rz" else "") + ("_sat" if saturate else "")
            one = device_function(
                f"to_{dtype}{suffix}", "unsigned short", "float", f"{ptx}.f32", "hf"
            )
            row[mode] = Conversion(
                numpy=partial(round_to, dtype, mode),
                c=call_of(one[0]),
                device=(one,),
                pack=_pack2(f"pack_{dtype}{suffix}", f"{ptx}x2.f32"),
                work=_ALU,
            )
    return row


def _to_8_bits(dtype: DType) -> Row:
    """f32 to fp8: to nearest even, always clamped to the largest finite value."""
    one, mode = _narrow8(f"to_{dtype}", dtype.name), Mode("rn", True)
    conversion = Conversion(
        numpy=partial(round_to, dtype, mode),
        c=call_of(one[0]),
        device=(one,),
        pack=_pack4(f"pack_{dtype}", dtype.name),
        work=_ALU,
        requires="fp8_convert",
    )
    return {Mode("rn"): conversion, mode: conversion}


def _from_8_bits(dtype: DType) -> Row:
    one = _widen8(f"from_{dtype}", dtype.name)
    return {
        Mode(): Conversion(
            numpy=exact, c=call_of(one[0]), device=(one,), work=Cost(alu=2), requires="fp8_convert"
        )
    }


_FROM_BF16 = Conversion(
    numpy=exact, c=lambda x: f"__uint_as_float((unsigned)({x}) << 16)", work=_ALU
)
FLOATS: Table = {
    **{(F32, d): _to_16_bits(d) for d in (BF16, F16)},
    (BF16, F32): {Mode(): _FROM_BF16},
    (F16, F32): {
        Mode(): Conversion(numpy=exact, c=call_of("from_f16"), device=(_FROM_F16,), work=_ALU)
    },
    (F32, TF32): {
        Mode("rna"): Conversion(
            numpy=round_tf32, c=call_of("to_tf32"), device=(_TO_TF32,), work=_ALU
        )
    },
    (TF32, F32): {Mode(): Conversion(numpy=exact, c=lambda x: x, work=Cost())},
    **{(F32, d): _to_8_bits(d) for d in (E4M3, E5M2)},
    **{(d, F32): _from_8_bits(d) for d in (E4M3, E5M2)},
    (F32, F32): {Mode(): Conversion(numpy=exact, c=lambda x: x, work=Cost())},
}
"""Conversions of float formats, by (source, result)."""
