"""``nanosleep(ns)``: a pause between two looks at memory."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.dtypes import I32, U32
from cake.ir.nodes import Call, Const, Static
from cake.ir.types import Scalar, Void
from cake.ops import check
from cake.ops.base import Param, SyncEffect, Typed, TypingContext, operand
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import define

LONGEST = 1_000_000
"""Nanoseconds (PTX ISA, nanosleep)."""


def _typing(t: TypingContext, call: Call) -> Typed:
    e = operand(call, "ns")
    ns = check.integer(t, e, "ns")
    assert isinstance(ns.type, Scalar)
    if ns.type.dtype not in (I32, U32):
        t.fail(f"ns must be i32 or u32, got {ns.type}", e)
    if isinstance(ns, Static | Const) and not 0 <= ns.value <= LONGEST:
        t.fail(
            f"ns must be in [0, {LONGEST}], got {ns.value}",
            e,
            facts={"ns": ns.value, "limit": LONGEST},
        )
    return Typed(Void(), (ns,))


def _meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    yield Wait(lambda: True, "the end of a nanosleep")


def _emit(cg: Emitter, call: Call) -> None:
    ns = operand(call, "ns")
    assert ns is not None
    code = """\
__device__ __forceinline__ void sleep_ns(unsigned ns) {
  asm volatile("nanosleep.u32 %0;" ::"r"(ns) : "memory");
}"""
    cg.line(f"{cg.helper('sleep_ns', code)}({cg.scalar(ns)});")


define(
    "nanosleep",
    SyncEffect("wait", "time"),
    params=(Param("ns"),),
    doc="Let the warp pause for about `ns` nanoseconds, at most twice as long and up to a"
    " millisecond; ns is i32 or u32. For loops that wait for a flag in memory.",
    source="PTX ISA, nanosleep",
    typing=_typing,
    meaning=_meaning,
    emit=_emit,
    convergent=False,
)
