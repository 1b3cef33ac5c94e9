"""The read-modify-writes that memory does by itself: one table for the atomic primitives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, F16, F32, I32, I64, U32, DType


@dataclass(frozen=True, slots=True, kw_only=True)
class Atomic:
    """One row: PTX operation, its type for each element type, and the new value."""

    op: str
    types: dict[DType, str]
    update: Callable[[Any, Any], Any]
    doc: str


def wrapped_add(old: Any, value: Any) -> Any:
    """A sum in the element type; integers wrap."""
    with np.errstate(over="ignore"):
        return old + value


def _ordered(larger: bool) -> Callable[[Any, Any], Any]:
    """The lesser or greater of two; floats are compared as their bits (see :func:`float_order`)."""
    pick, other = (np.maximum, np.minimum) if larger else (np.minimum, np.maximum)
    worst = np.float32(-np.inf if larger else np.inf)

    def update(old: Any, value: Any) -> Any:
        if np.asarray(old).dtype.kind != "f":
            return pick(old, value)
        old, value = np.asarray(old), np.asarray(np.where(np.isnan(value), worst, value))
        signed = pick(old.view(np.int32), value.view(np.int32)).view(np.float32)
        unsigned = other(old.view(np.uint32), value.view(np.uint32)).view(np.float32)
        return np.where(np.signbit(value), unsigned, signed)

    return update


ADD_TYPES = {
    I32: "s32",
    U32: "u32",
    I64: "u64",
    F32: "f32",
    F16: "noftz.f16",
    BF16: "noftz.bf16",
}
_ORDERED = {I32: "s32", U32: "u32", I64: "s64", F32: "f32"}
_FLOATS = " f32 is ordered by its bits: -0.0 below +0.0; a NaN as `value` changes nothing."
_BITS = {I32: "b32", U32: "b32", I64: "b64", F32: "b32"}

ATOMICS = {
    "atomic_add": Atomic(
        op="add",
        types=ADD_TYPES,
        update=wrapped_add,
        doc="Add `value` to the element `target` and return the old value. Integers wrap; sums of"
        " floats depend on the order in which threads arrive. f16 everywhere, bf16 from sm_90 on.",
    ),
    "atomic_min": Atomic(
        op="min",
        types=_ORDERED,
        update=_ordered(larger=False),
        doc=f"Keep the lesser of the element `target` and `value`.{_FLOATS}",
    ),
    "atomic_max": Atomic(
        op="max",
        types=_ORDERED,
        update=_ordered(larger=True),
        doc=f"Keep the greater of the element `target` and `value`.{_FLOATS}",
    ),
    "atomic_exch": Atomic(
        op="exch",
        types=_BITS,
        update=lambda old, value: value,
        doc="Put `value` into the element `target`.",
    ),
}
CAS_TYPES = {d: _BITS[d] for d in (I32, U32, I64)}


def float_order(name: str, variant: str, address: tuple[str, str], *, larger: bool) -> str:
    """Code of atomic min or max over f32, which PTX lacks; ``address``: C type and constraint.

    The bits of floats of one sign are ordered like integers; below zero the order is reversed, as
    that of unsigned numbers is against that of signed ones.
    """
    at_type, constraint = address
    worst = "0xff800000u" if larger else "0x7f800000u"
    above, below = ("max", "min") if larger else ("min", "max")
    line = f'asm volatile("atom.{variant}.%s.%s %%0, [%%1], %%2;" : "=r"(old) : "{constraint}"(at)'
    return f"""\
__device__ __forceinline__ float {name}({at_type} at, float v) {{
  const unsigned bits = v != v ? {worst} : __float_as_uint(v);
  unsigned old;
  if ((int)bits >= 0) {{
    {line % (above, "s32")}, "r"(bits) : "memory");
  }} else {{
    {line % (below, "u32")}, "r"(bits) : "memory");
  }}
  return __uint_as_float(old);
}}"""
