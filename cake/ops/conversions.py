"""Conversions between element types: what numpy and the GPU do, in one table for ``cast``.

The rows are in :mod:`cake.ops.conversions_float` and :mod:`cake.ops.conversions_int`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cake.ir.dtypes import DType
from cake.ops.base import Cost

Function = tuple[str, str]
"""A ``__device__`` function: name and code."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """One way from an element type to another.

    ``c`` makes the C expression of one element; ``device`` are the ``__device__`` functions it
    calls. ``pack`` is the function that makes a word of an array from its elements, where the
    result is packed. ``work``: cost of one element. ``requires``: capability of the target.
    """

    numpy: Callable[[Any], Any]
    c: Callable[[str], str]
    device: tuple[Function, ...] = ()
    pack: Function | None = None
    work: Cost
    requires: str | None = None


@dataclass(frozen=True, slots=True)
class Mode:
    """How a conversion treats what the result cannot hold.

    ``round`` is PTX's rounding mode (rn, rz, rm, rp; rna for tf32), None where nothing is rounded.
    ``saturate`` clamps where the conversion otherwise wraps or gives infinity.
    """

    round: str | None = None
    saturate: bool = False


Row = Mapping[Mode, Conversion]
"""All ways from one element type to another; the first is the one that ``cast`` takes by itself."""


def chosen(row: Row, round: str | None, saturate: bool) -> Conversion | None:
    """The conversion for attributes of ``cast``; a rounding mode left out is the row's first."""
    first = next(iter(row)).round
    return row.get(Mode(first if round is None else round, saturate))


def device_function(name: str, result: str, operand: str, instruction: str, types: str) -> Function:
    """A function of one operand around one instruction; ``types`` are the two constraints."""
    return (
        name,
        f"""__device__ __forceinline__ {result} {name}({operand} x) {{
  {result} y;
  asm("{instruction} %0, %1;" : "={types[0]}"(y) : "{types[1]}"(x));
  return y;
}}""",
    )


def call_of(name: str) -> Callable[[str], str]:
    """C expression of a call with one argument."""
    return lambda x: f"{name}({x})"


Table = dict[tuple[DType, DType], Row]
