"""``named_sync(nb)`` and ``named_arrive(nb)``: hardware barriers between roles."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call, Const, ResourceRef
from cake.ir.program import NamedBarrier
from cake.ir.types import Void
from cake.ops import check
from cake.ops.barrier_ids import barrier_ids
from cake.ops.base import Param, SyncEffect, Typed, TypingContext
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import barrier_sync, define


def _name(call: Call) -> str:
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    return ref.name


def _typing(t: TypingContext, call: Call) -> Typed:
    barrier = t.resource(_name(call))
    if not isinstance(barrier, NamedBarrier):
        t.fail(f"barrier must be declared with named_barrier(...), got {_name(call)}")
    if barrier.threads < t.unit_threads or barrier.threads % 32:
        t.fail(
            f"{barrier.name} counts {barrier.threads} threads; a generation of it takes whole"
            f" warps, and this unit alone brings {t.unit_threads}",
            helps=("threads= is 32 * (warps that arrive + warps that sync)",),
            facts={"threads": barrier.threads, "unit_threads": t.unit_threads},
        )
    slot = call.args[1]
    if slot is None:
        return Typed(Void(), call.args)
    slot = check.uniform(t, check.integer(t, slot, "slot"), "slot")
    if isinstance(slot, Const) and not 0 <= slot.value < barrier.slots:
        t.fail(
            f"slot {slot.value} is outside the {barrier.slots} slots of {barrier.name}",
            slot,
            facts={"slot": slot.value, "slots": barrier.slots},
        )
    return Typed(Void(), (call.args[0], slot))


def _key(unit: Unit, call: Call) -> str:
    slot = call.args[1]
    return f"{_name(call)}[{0 if slot is None else int(unit.eval(slot))}]"


def _ident(cg: Emitter, call: Call) -> str:
    first = barrier_ids(cg.program).named[_name(call)]
    slot = call.args[1]
    return str(first) if slot is None else f"{first} + ({cg.scalar(slot)})"


def _declared(stage: Emitter | Unit, call: Call) -> NamedBarrier:
    barrier = stage.resource(_name(call))
    assert isinstance(barrier, NamedBarrier)
    return barrier


def _sync_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    barrier = _declared(unit, call)
    yield from unit.barrier_sync(_key(unit, call), barrier.threads)


def _arrive_meaning(unit: Unit, call: Call) -> None:
    barrier = _declared(unit, call)
    unit.barrier_arrive(_key(unit, call), barrier.threads)


def _emit_sync(cg: Emitter, call: Call) -> None:
    barrier = _declared(cg, call)
    cg.line(barrier_sync(cg, _ident(cg, call), barrier.threads, one_site=False))


def _emit_arrive(cg: Emitter, call: Call) -> None:
    barrier = _declared(cg, call)
    code = """\
__device__ __forceinline__ void barrier_arrive(unsigned id, unsigned threads) {
  asm volatile("barrier.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}"""
    ident = _ident(cg, call)
    cg.line(f"{cg.helper('barrier_arrive', code)}({ident}, {barrier.threads});")


_PARAMS = (Param("barrier", "resource"), Param("slot", default=0))

define(
    "named_sync",
    SyncEffect("barrier", "named"),
    params=_PARAMS,
    doc="Arrive at a named barrier (slot `slot`) with all threads of the unit and wait until"
    " `threads` (declared) have arrived. Releases and acquires memory of the CTA through the"
    " generic proxy.",
    source="PTX ISA 9.0, barrier{.cta}.sync",
    typing=_typing,
    meaning=_sync_meaning,
    emit=_emit_sync,
)
define(
    "named_arrive",
    SyncEffect("arrive", "named"),
    params=_PARAMS,
    doc="Arrive at a named barrier (slot `slot`) with all threads of the unit, without waiting.",
    source="PTX ISA 9.0, barrier{.cta}.arrive",
    typing=_typing,
    meaning=_arrive_meaning,
    emit=_emit_arrive,
)
