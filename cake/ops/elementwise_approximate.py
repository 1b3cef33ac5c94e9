"""Approximate functions of the elementwise table: one instruction of the special-function unit,
or a formula of a few.

They lie within the error that the PTX ISA states; simulator and GPU may differ by as much.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake.ir.dtypes import F32
from cake.ops import elementwise_numpy as fn
from cake.ops.base import Cost
from cake.ops.elementwise import Elementwise
from cake.ops.elementwise_rows import define


def _function(instruction: str) -> tuple[str, str]:
    """A function around an instruction of one operand: (name, code)."""
    name = f"{instruction.split('.')[0]}_approx"
    return (
        name,
        f"""__device__ __forceinline__ float {name}(float x) {{
  float y;
  asm("{instruction} %0, %1;" : "=f"(y) : "f"(x));
  return y;
}}""",
    )


_EX2 = _function("ex2.approx.ftz.f32")
_LG2 = _function("lg2.approx.ftz.f32")
_RCP = _function("rcp.approx.ftz.f32")


def _instruction(name: str, ptx: str, numpy: Callable[[Any], Any], doc: str) -> Elementwise:
    device = _function(ptx)
    return Elementwise(
        name=name,
        names=("a",),
        admits=(F32,),
        numpy=numpy,
        c=lambda dtype, x: f"{device[0]}({x[0]})",
        device=(device,),
        work=Cost(sfu=1),
        doc=f"{doc} (PTX {ptx}).",
    )


def _formula(
    name: str,
    numpy: Callable[[Any], Any],
    text: str,
    device: tuple[tuple[str, str], ...],
    work: Cost,
    doc: str,
) -> Elementwise:
    """``text`` is the C expression with ``{a}`` for the operand."""
    return Elementwise(
        name=name,
        names=("a",),
        admits=(F32,),
        numpy=numpy,
        c=lambda dtype, x: text.format(a=x[0]),
        device=device,
        work=work,
        doc=doc,
    )


_TABLE = (
    _instruction("exp2", "ex2.approx.ftz.f32", fn.exp2, "2 to the power a, subnormals flushed"),
    _instruction("log2", "lg2.approx.ftz.f32", fn.log2, "log2(a), subnormals flushed"),
    _instruction("rcp", "rcp.approx.ftz.f32", fn.rcp, "1 / a, subnormals flushed"),
    _instruction("rsqrt", "rsqrt.approx.ftz.f32", fn.rsqrt, "1 / sqrt(a), subnormals flushed"),
    _instruction("sqrt", "sqrt.approx.ftz.f32", fn.sqrt, "Square root of a, subnormals flushed"),
    _instruction("tanh", "tanh.approx.f32", fn.tanh, "tanh(a), relative error 2^-11"),
    _instruction(
        "sin", "sin.approx.ftz.f32", fn.sin, "sin(a), absolute error 2^-20.5 for |a| up to 2 pi"
    ),
    _instruction(
        "cos", "cos.approx.ftz.f32", fn.cos, "cos(a), absolute error 2^-20.5 for |a| up to 2 pi"
    ),
    _formula(
        "exp",
        fn.exp,
        "ex2_approx({a} * 1.4426950408889634f)",
        (_EX2,),
        Cost(fma=1, sfu=1),
        "e to the power a, as exp2(a * log2(e)): the relative error grows with |a|.",
    ),
    _formula(
        "log",
        fn.log,
        "(lg2_approx({a}) * 0.6931471805599453f)",
        (_LG2,),
        Cost(fma=1, sfu=1),
        "Natural logarithm of a, as log2(a) * ln(2).",
    ),
    _formula(
        "sigmoid",
        fn.sigmoid,
        "rcp_approx(1.0f + ex2_approx({a} * -1.4426950408889634f))",
        (_EX2, _RCP),
        Cost(fma=2, sfu=2),
        "1 / (1 + e^-a), as rcp(1 + exp2(a * -log2(e))). a * sigmoid(a) is SiLU.",
    ),
)
for _entry in _TABLE:
    define(_entry)
