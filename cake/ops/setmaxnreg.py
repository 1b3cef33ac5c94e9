"""``setmaxnreg(action, count)``: move registers between warpgroups in the course of a role.

``role(..., regs=n)`` does it once, where the role begins; this is for budgets that change.
"""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ops import check
from cake.ops.base import Param, SyncEffect, TypingContext, operand, static
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.sync import define

ACTIONS = ("inc", "dec")


def _typing(t: TypingContext, call: Call) -> None:
    check.one_of(t, operand(call, "action"), "action", ACTIONS)
    limits = t.target.setmaxnreg
    assert limits is not None
    e = operand(call, "count")
    count = check.static_int(t, e, "count", limits.low, limits.high)
    if count % limits.step:
        t.fail(
            f"count must be a multiple of {limits.step}, got {count}",
            e,
            facts={"count": count, "multiple_of": limits.step},
        )


def _meaning(unit: Unit, call: Call) -> None:
    """Nothing: the simulator has registers enough."""


def _emit(cg: Emitter, call: Call) -> None:
    action, count = static(call, "action"), static(call, "count")
    cg.line(f'asm volatile("setmaxnreg.{action}.sync.aligned.u32 {count};");')


define(
    "setmaxnreg",
    SyncEffect("wait", "registers"),
    params=(Param("action", "static"), Param("count", "static")),
    doc="Raise (action 'inc') or lower ('dec') the warpgroup's registers a thread to `count`, a"
    " multiple of 8 in [24, 256]. Raising waits until other warpgroups have given enough back; what"
    " lies above a lowered count is lost. role(..., regs=n) does it where the role begins.",
    source="PTX ISA, setmaxnreg",
    typing=_typing,
    meaning=_meaning,
    emit=_emit,
    requires="setmaxnreg",
    units=frozenset({"warpgroup"}),
)
