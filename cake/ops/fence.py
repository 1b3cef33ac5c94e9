"""``fence(scope)``: order this thread's generic accesses for threads beyond the unit."""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ops import check
from cake.ops.base import Param, SyncEffect, TypingContext, static
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.sync import define

SCOPES = ("cta", "cluster", "gpu", "sys")


def _typing(t: TypingContext, call: Call) -> None:
    check.one_of(t, call.args[0], "scope", SCOPES)
    if static(call, "scope") == "cluster" and not t.target.cluster:
        t.fail(f"{t.target.name} has no clusters", call.args[0], code="CK201")


def _meaning(unit: Unit, call: Call) -> None:
    """Units of the simulator see each other's generic accesses at once; this allows it."""
    unit.publish()


def _emit(cg: Emitter, call: Call) -> None:
    scope = static(call, "scope")
    code = f"""\
__device__ __forceinline__ void fence_{scope}() {{
  asm volatile("fence.acq_rel.{scope};" ::: "memory");
}}"""
    cg.line(f"{cg.helper(f'fence_{scope}', code)}();")


define(
    "fence",
    SyncEffect("fence", "memory"),
    params=(Param("scope", "static", "gpu"),),
    doc="Order this thread's earlier accesses to memory before its later ones, for observers in the"
    " scope: cta, cluster, gpu or sys. With an atomic on a flag it publishes data to other CTAs.",
    source="PTX ISA 9.0, membar/fence: fence.acq_rel",
    typing=_typing,
    meaning=_meaning,
    emit=_emit,
    convergent=False,
)
