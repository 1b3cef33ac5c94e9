"""``clock`` and ``globaltimer``: the time, for measurements inside a kernel. One table."""

from __future__ import annotations

from functools import partial

import numpy as np

from cake.ir.dtypes import I64
from cake.ir.nodes import Call
from cake.ir.types import Scalar
from cake.ops.base import (
    Cost,
    Effects,
    Primitive,
    SyncEffect,
    TypingContext,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> Scalar:
    return Scalar(I64, True)


def _effects(call: Call) -> Effects:
    """Reads of time stay where they stand, and each is made once."""
    return (SyncEffect("fence", "time"),)


def _meaning(unit: Unit, call: Call) -> np.int64:
    return np.int64(unit.clock())


def _emit(special: str, cg: Emitter, call: Call, dest: str | None) -> str:
    name = f"read_{call.op}"
    code = f"""\
__device__ __forceinline__ long long {name}() {{
  long long now;
  asm volatile("mov.u64 %0, %%{special};" : "=l"(now) :: "memory");
  return now;
}}"""
    return f"{cg.helper(name, code)}()"


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=2 * threads // 32)


for _name, _special, _doc in (
    (
        "clock",
        "clock64",
        "Cycles of the multiprocessor's counter, as i64. Differences within one CTA are times.",
    ),
    (
        "globaltimer",
        "globaltimer",
        "Nanoseconds of the device's timer, as i64: comparable between CTAs. Its resolution is that"
        " of the device, often a microsecond.",
    ),
):
    register(
        Primitive(
            name=_name,
            params=(),
            doc=f"{_doc} In the simulator a number that grows from read to read.",
            source=f"PTX ISA, Special Registers: %{_special}",
            typing=_typing,
            effects=_effects,
            meaning=_meaning,
            cost=_cost,
            emit={"": partial(_emit, _special)},
        )
    )
