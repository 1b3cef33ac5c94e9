"""Conversions between element types: what numpy and the GPU do, in one table for ``cast``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, BOOL, E4M3, E5M2, F16, F32, I32, I64, TF32, U32, DType, numpy_dtype
from cake.ops.base import Cost
from cake.ops.c_types import C_TYPE


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One pair of element types.

    ``c`` makes the C expression of one element; ``device`` are the ``__device__`` functions it
    calls, as (name, code). ``pack`` is the function that makes a word of an array from its
    elements, where the result is packed. ``work``: cost of one element. ``requires``: capability
    of the target.
    """

    numpy: Callable[[Any], Any]
    c: Callable[[str], str]
    device: tuple[tuple[str, str], ...] = ()
    pack: tuple[str, str] | None = None
    work: Cost
    requires: str | None = None


# -- numpy -----------------------------------------------------------------------------------------


def _as(dtype: DType) -> Callable[[Any], Any]:
    return lambda x: np.asarray(x).astype(numpy_dtype(dtype))


def _truncate(dtype: DType) -> Callable[[Any], Any]:
    """cvt.rzi: toward zero, clamped to the range; NaN gives 0, for 64 bits the smallest value."""
    low, high = np.iinfo(numpy_dtype(dtype)).min, np.iinfo(numpy_dtype(dtype)).max

    def run(x: Any) -> Any:
        wide = np.trunc(np.asarray(x).astype(np.float64))
        over = wide >= -float(low) if low else wide > float(high)
        inside = ~over & (wide >= float(low))
        whole = np.where(inside, wide, 0).astype(numpy_dtype(dtype))
        clamped = np.where(over, high, np.where(wide < float(low), low, whole))
        nan = low if dtype == I64 else 0
        return np.where(np.isnan(wide), nan, clamped).astype(numpy_dtype(dtype))

    return run


def _saturate(dtype: DType, largest: float) -> Callable[[Any], Any]:
    """cvt.rn.satfinite: to nearest even within the finite values; NaN stays."""
    return lambda x: np.clip(x, -largest, largest).astype(numpy_dtype(dtype))


def round_tf32(x: Any) -> Any:
    """cvt.rna.tf32: 10 bits of fraction, ties away from zero."""
    x = np.asarray(x, np.float32)
    rounded = (x.view(np.uint32) + np.uint32(0x1000)) & np.uint32(0xFFFFE000)
    return np.where(np.isfinite(x), rounded.view(np.float32), x)


# -- CUDA ------------------------------------------------------------------------------------------


def _asm(name: str, result: str, operand: str, instruction: str, types: str) -> tuple[str, str]:
    """A function of one operand around one instruction; ``types`` are the two constraints."""
    return (
        name,
        f"""__device__ __forceinline__ {result} {name}({operand} x) {{
  {result} y;
  asm("{instruction} %0, %1;" : "={types[0]}"(y) : "{types[1]}"(x));
  return y;
}}""",
    )


def _pack2(name: str, ptx: str) -> tuple[str, str]:
    return (
        name,
        f"""__device__ __forceinline__ unsigned {name}(float x0, float x1) {{
  unsigned y;
  asm("cvt.rn.{ptx}x2.f32 %0, %1, %2;" : "=r"(y) : "f"(x1), "f"(x0));
  return y;
}}""",
    )


def _pack4(name: str, ptx: str) -> tuple[str, str]:
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


def _narrow8(name: str, ptx: str) -> tuple[str, str]:
    return (
        name,
        f"""__device__ __forceinline__ unsigned char {name}(float x) {{
  unsigned short y;
  asm("cvt.rn.satfinite.{ptx}x2.f32 %0, %1, %2;" : "=h"(y) : "f"(0.0f), "f"(x));
  return (unsigned char)y;
}}""",
    )


def _widen8(name: str, ptx: str) -> tuple[str, str]:
    return (
        name,
        f"""__device__ __forceinline__ float {name}(unsigned short x) {{
  float y;
  asm("{{.reg .b32 pair; .reg .b16 lo, hi; cvt.rn.f16x2.{ptx}x2 pair, %1;"
      " mov.b32 {{lo, hi}}, pair; cvt.f32.f16 %0, lo;}}" : "=f"(y) : "h"(x));
  return y;
}}""",
    )


def _call(name: str) -> Callable[[str], str]:
    return lambda x: f"{name}({x})"


# -- the table -------------------------------------------------------------------------------------

_ALU, _SFU = Cost(alu=1), Cost(sfu=1)
_TO_TF32 = (
    "to_tf32",
    """__device__ __forceinline__ float to_tf32(float x) {
  unsigned y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return __uint_as_float(y);
}""",
)
_TO_BF16 = _asm("to_bf16", "unsigned short", "float", "cvt.rn.bf16.f32", "hf")
_TO_F16 = _asm("to_f16", "unsigned short", "float", "cvt.rn.f16.f32", "hf")
_FROM_F16 = _asm("from_f16", "float", "unsigned short", "cvt.f32.f16", "fh")


def _fp8(dtype: DType, largest: float) -> dict[tuple[DType, DType], Conversion]:
    to, back = _narrow8(f"to_{dtype}", dtype.name), _widen8(f"from_{dtype}", dtype.name)
    return {
        (F32, dtype): Conversion(
            numpy=_saturate(dtype, largest), c=_call(to[0]), device=(to,),
            pack=_pack4(f"pack_{dtype}", dtype.name), work=_ALU, requires="fp8_convert",
        ),
        (dtype, F32): Conversion(
            numpy=_as(F32), c=_call(back[0]), device=(back,), work=Cost(alu=2),
            requires="fp8_convert",
        ),
    }  # fmt: skip


def _plain(source: DType, to: DType) -> Conversion:
    """Integer to integer (wrapping), and truth values to numbers: C converts as the GPU does."""
    work = Cost(alu=2 if I64 in (source, to) else 1)
    return Conversion(numpy=_as(to), c=lambda x: f"({C_TYPE[to]}){x}", work=work)


def _rounding(source: DType, to: DType, intrinsic: str, numpy: Callable[[Any], Any]) -> Any:
    work = Cost(sfu=4) if I64 in (source, to) else _SFU
    return (source, to), Conversion(numpy=numpy, c=_call(intrinsic), work=work)


CONVERSIONS: dict[tuple[DType, DType], Conversion] = {
    (F32, BF16): Conversion(
        numpy=_as(BF16), c=_call(_TO_BF16[0]), device=(_TO_BF16,), pack=_pack2("pack_bf16", "bf16"),
        work=_ALU,
    ),
    (F32, F16): Conversion(
        numpy=_as(F16), c=_call(_TO_F16[0]), device=(_TO_F16,), pack=_pack2("pack_f16", "f16"),
        work=_ALU,
    ),
    (BF16, F32): Conversion(
        numpy=_as(F32), c=lambda x: f"__uint_as_float((unsigned)({x}) << 16)", work=_ALU,
    ),
    (F16, F32): Conversion(numpy=_as(F32), c=_call(_FROM_F16[0]), device=(_FROM_F16,), work=_ALU),
    (F32, TF32): Conversion(numpy=round_tf32, c=_call(_TO_TF32[0]), device=(_TO_TF32,), work=_ALU),
    (TF32, F32): Conversion(numpy=_as(F32), c=lambda x: x, work=Cost()),
    **_fp8(E4M3, 448.0),
    **_fp8(E5M2, 57344.0),
    **dict(
        [
            _rounding(F32, I32, "__float2int_rz", _truncate(I32)),
            _rounding(F32, U32, "__float2uint_rz", _truncate(U32)),
            _rounding(F32, I64, "__float2ll_rz", _truncate(I64)),
            _rounding(I32, F32, "__int2float_rn", _as(F32)),
            _rounding(U32, F32, "__uint2float_rn", _as(F32)),
            _rounding(I64, F32, "__ll2float_rn", _as(F32)),
        ]
    ),
    **{(a, b): _plain(a, b) for a in (I32, U32, I64, BOOL) for b in (I32, U32, I64) if a != b},
    (BOOL, F32): _plain(BOOL, F32),
    **{(d, d): Conversion(numpy=_as(d), c=lambda x: x, work=Cost()) for d in (F32, I32, U32, I64)},
}  # fmt: skip
"""How to convert, by (source, result). f32 is the hub: 16- and 8-bit floats convert through it."""
