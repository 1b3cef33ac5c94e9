"""``tcgen05_commit`` and the fences that order tcgen05 work of different threads (sm_100a)."""

from __future__ import annotations

from cake.ir.nodes import Call, ResourceRef
from cake.ir.program import PAIR, Barrier, Pipeline
from cake.ir.types import Resource, Slot
from cake.ops import completion, pairs
from cake.ops.base import Effects, Param, SyncEffect, Typed, TypingContext
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.sync import define


def _typing(t: TypingContext, call: Call) -> Typed:
    ref, slot = call.args
    assert isinstance(ref, ResourceRef)
    if t.unit_threads != 32:
        t.fail("the products of one thread are committed by its warp", code="CK203")
    target = t.resource(ref.name)
    if isinstance(target, Pipeline):
        if slot is None or slot.type != Slot(target.name):
            t.fail(f"slot must be a slot of {target.name}", slot)
        return Typed(call.type, (ref, slot))
    if not isinstance(target, Barrier):
        t.fail(f"to must be a pipeline or an mbarrier, got {ref.name}", ref)
    return Typed(call.type, (ref, completion.slot_of(t, target, slot)))


def _releases(call: Call) -> Effects:
    """A commit to a ring hands the slot back when the products are complete."""
    ring = call.args[0] is not None and call.args[0].type == Resource("pipeline")
    return (SyncEffect("arrive", "pipeline" if ring else "mbarrier"),)


def _meaning(unit: Unit, call: Call) -> None:
    ref, slot = call.args
    assert isinstance(ref, ResourceRef)
    assert slot is not None
    stage = int(unit.eval(slot))
    ring = isinstance(unit.resource(ref.name), Pipeline)
    for rank in pairs.ranks(unit.program) if pairs.acts(unit) else ():
        of = unit.empty_barrier if ring else unit.mbarrier
        unit.arrive_when_done("tcgen05", of(ref.name, stage, rank), 1)


def _emit(cg: Emitter, call: Call) -> None:
    ref, slot = call.args
    assert isinstance(ref, ResourceRef)
    assert slot is not None
    stage = cg.scalar(slot)
    ring = isinstance(cg.resource(ref.name), Pipeline)
    barrier = cg.empty_barrier(ref.name, stage) if ring else cg.mbarrier(ref.name, stage)
    operands, tail, mask = "[%0]", "", ""
    if pairs.group(cg.program) == PAIR:
        operands, tail, mask = "[%0], %1", ".multicast::cluster", f', "h"((short){(1 << PAIR) - 1})'
    code = f"""\
__device__ __forceinline__ void tcgen05_commit(unsigned bar) {{
  asm volatile(
      "tcgen05.commit.cta_group::{pairs.group(cg.program)}.mbarrier::arrive::one"
      ".shared::cluster{tail}.b64 {operands};"
      ::"r"(bar){mask} : "memory");
}}"""
    name = cg.helper("tcgen05_commit", code)
    with pairs.issuing(cg):
        cg.line(f"{name}({barrier});")


def _fence_meaning(unit: Unit, call: Call) -> None:
    """Nothing: the barrier between the fences orders units of the simulator."""


def _emit_fence(cg: Emitter, call: Call) -> None:
    when = "before" if call.op == "tcgen05_fence_before" else "after"
    code = f"""\
__device__ __forceinline__ void {call.op}() {{
  asm volatile("tcgen05.fence::{when}_thread_sync;" ::: "memory");
}}"""
    cg.line(f"{cg.helper(call.op, code)}();")


define(
    "tcgen05_commit",
    SyncEffect("commit", "tcgen05"),
    more_effects=_releases,
    params=(Param("to", "resource"), Param("slot")),
    doc="One arrival once all tcgen05_mma of this warp so far are complete. `to` is an mbarrier and"
    " `slot` its slot, or a ring and a slot of it, which this releases in place of release. With"
    " paired tensor memory the CTA that leads commits, and the arrival is made in both CTAs.",
    source="PTX ISA 9.0, tcgen05.commit, .multicast::cluster",
    typing=_typing,
    meaning=_meaning,
    emit=_emit,
    requires="tcgen05",
    issue=2,
)
for _when, _what in (
    ("before", "earlier tcgen05 work before a barrier or arrival that follows"),
    ("after", "later tcgen05 work after a barrier or wait that precedes"),
):
    define(
        f"tcgen05_fence_{_when}",
        SyncEffect("fence", "tcgen05"),
        doc=f"Order this thread's {_what}.",
        source="PTX ISA 9.0, tcgen05.fence",
        meaning=_fence_meaning,
        emit=_emit_fence,
        requires="tcgen05",
        convergent=False,
    )
