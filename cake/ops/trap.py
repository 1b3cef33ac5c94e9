"""``trap(condition)``: end the kernel with an error."""

from __future__ import annotations

import numpy as np

from cake.ir.nodes import Call
from cake.ir.types import Void
from cake.ops import check
from cake.ops.base import Param, SyncEffect, Typed, TypingContext, operand
from cake.ops.emit import Emitter
from cake.ops.findings import TRAPPED
from cake.ops.machine import Unit
from cake.ops.sync import define


def _typing(t: TypingContext, call: Call) -> Typed | None:
    condition = operand(call, "condition")
    if condition is None:
        return None
    return Typed(Void(), (check.boolean(t, condition, "condition"),))


def _meaning(unit: Unit, call: Call) -> None:
    condition = operand(call, "condition")
    hit = np.asarray(unit.mask)
    if condition is not None:
        hit = hit & np.asarray(unit.eval(condition))
    if hit.any():
        threads = np.nonzero(hit)[0]
        unit.fail(
            TRAPPED,
            f"{len(threads)} threads trap, thread {threads[0]} first",
            threads=len(threads),
            first=int(threads[0]),
        )


def _emit(cg: Emitter, call: Call) -> None:
    condition = operand(call, "condition")
    trap = 'asm volatile("trap;");'
    cg.line(trap if condition is None else f"if ({cg.scalar(condition)}) {trap}")


define(
    "trap",
    SyncEffect("fence", "trap"),
    params=(Param("condition", default=True),),
    doc="End the kernel with an error if `condition` (a bool, by default True) holds in any thread."
    " The device's context is lost with it: for what must never happen.",
    source="PTX ISA, trap",
    typing=_typing,
    meaning=_meaning,
    emit=_emit,
    convergent=False,
    issue=2,
)
