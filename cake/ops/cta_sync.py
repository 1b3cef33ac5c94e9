"""``cta_sync()``: a barrier over every role of the CTA."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call
from cake.ir.program import Program
from cake.ops.base import SyncEffect
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import barrier_sync, define


def role_threads(program: Program) -> int:
    """Threads of all roles; idle warps that fill up a warpgroup take part in nothing."""
    return 32 * sum(r.warps for r in program.role_decls())


def _meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    yield from unit.barrier_sync("cta", role_threads(unit.program))


def _emit(cg: Emitter, call: Call) -> None:
    # A role alone in its CTA has one instruction for all; roles have one each.
    alone = len(cg.program.role_decls()) == 1
    cg.line(barrier_sync(cg, "0", role_threads(cg.program), one_site=alone))


define(
    "cta_sync",
    SyncEffect("barrier", "cta"),
    doc="Barrier over the threads of all roles of the CTA (hardware barrier 0). Every role executes"
    " it equally often.",
    source="PTX ISA 9.0, barrier{.cta}.sync",
    meaning=_meaning,
    emit=_emit,
)
