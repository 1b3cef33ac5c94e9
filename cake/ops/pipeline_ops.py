"""The explicit ring statements, and what they share with the brackets.

``s = acquire(p)`` ... ``commit(p, s)`` is ``with p.fill() as s``; ``s = wait(p)`` ...
``release(p, s)`` is ``with p.use() as s``. The emitter and the simulator lower brackets with the
``emit_*`` and ``mean_*`` functions of this module. What is derived comes from
:mod:`cake.ops.rings`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from typing import Any, Literal

from cake.ir.nodes import Call, Expr, ResourceRef
from cake.ir.program import Cluster, Pipeline
from cake.ir.types import Slot, Type, Void
from cake.ops import pairs, ptx_mbarrier
from cake.ops.base import Cost, Effects, Param, Primitive, SyncEffect, TypingContext, register
from cake.ops.cp_async import wait_all
from cake.ops.emit import Emitter
from cake.ops.fence_async import fence_proxy_async
from cake.ops.findings import UNKNOWN_FILL
from cake.ops.machine import Unit, Wait
from cake.ops.ring_fills import Fill, Site
from cake.ops.rings import RingFacts, Side, ring_facts

# -- emission --------------------------------------------------------------------------------------


def emit_acquire(cg: Emitter, pipeline: str, site: Site) -> str:
    """Wait for a free stage and announce the bytes of the fill that begins at ``site``.

    Returns the stage as the name of an ``int`` constant. Raises ValueError for a fill whose bytes
    are not known, which the verifier rejects.
    """
    facts = ring_facts(cg.program, pipeline)
    fill = facts.fill(site)
    if fill.bytes is None:
        raise ValueError(f"ring {pipeline}: the bytes of the fill are unknown: {fill.why}")
    slot, phase = _slot(cg, facts, "fill")
    empty = cg.empty_barrier(pipeline, slot)
    ring = _ring(cg, pipeline)
    cg.line(ptx_mbarrier.wait(cg, empty, f"{phase} ^ 1", cluster=ring.clustered))
    _emit_advance(cg, facts, "fill")
    # The announcement comes last, so that the elected thread goes on to its copies.
    _emit_announce(cg, fill, cg.full_barrier(pipeline, slot), _home(ring))
    return slot


def _home(ring: Pipeline) -> str | None:
    """The rank of the CTA whose full barrier counts the fills, as a C expression."""
    rank = pairs.home(ring)
    return None if rank is None else str(rank)


def _emit_announce(cg: Emitter, fill: Fill, full: str, rank: str | None) -> None:
    """Expect the bytes of the copies, and arrive if nothing else writes the stage."""
    if fill.early and cg.unit_threads == 32:
        cg.line("__syncwarp();")
        with cg.elected():
            cg.line(ptx_mbarrier.arrive_expect_tx(cg, full, str(fill.bytes), rank))
        return
    if fill.bytes:
        with cg.elected():
            cg.line(ptx_mbarrier.expect_tx(cg, full, str(fill.bytes), rank))
    if fill.early:
        _emit_arrive_warps(cg, full, rank)


def _emit_arrive_warps(cg: Emitter, bar: str, rank: str | None = None) -> None:
    """One arrival a warp, after all its lanes got here; on the barrier of CTA ``rank``."""
    cg.line("__syncwarp();")
    with cg.block("if (lane == 0)"):
        if rank is None:
            cg.line(ptx_mbarrier.arrive(cg, bar))
        else:
            cg.line(ptx_mbarrier.arrive_remote(cg, bar, rank))


def emit_commit(cg: Emitter, pipeline: str, slot: str, fill: Fill) -> None:
    """End a fill: nothing for an early one, else fences and arrivals on the full barrier."""
    if fill.early:
        return
    facts = ring_facts(cg.program, pipeline)
    full = cg.full_barrier(pipeline, slot)
    if facts.arrival == "threads":
        cg.line(ptx_mbarrier.arrive_after_cp_async(cg, full))
        return
    if facts.drain:
        cg.line(wait_all(cg))
    if facts.fence:
        cg.line(fence_proxy_async(cg))
    _emit_arrive_warps(cg, full, _home(_ring(cg, pipeline)))


def emit_wait(cg: Emitter, pipeline: str) -> str:
    """Wait for the next full stage; returns it as the name of an ``int`` constant."""
    facts = ring_facts(cg.program, pipeline)
    slot, phase = _slot(cg, facts, "use")
    full, pair = cg.full_barrier(pipeline, slot), _ring(cg, pipeline).pair
    with pairs.leading(cg, pair):
        cg.line(ptx_mbarrier.wait(cg, full, phase, cluster=pair))
    _emit_advance(cg, facts, "use")
    return slot


def emit_release(cg: Emitter, pipeline: str, slot: str) -> None:
    """One arrival a warp on the empty barrier, of every CTA if the ring is theirs together."""
    empty, ring = cg.empty_barrier(pipeline, slot), _ring(cg, pipeline)
    if not ring.clustered:
        _emit_arrive_warps(cg, empty)
        return
    size = next((c.size for c in cg.program.find(Cluster)), 1)
    with pairs.leading(cg, ring.pair):
        cg.line("__syncwarp();")
        with cg.block(f"if (lane < {size})"):
            cg.line(ptx_mbarrier.arrive_remote(cg, empty, "lane"))


def _ring(stage: Emitter | Unit, pipeline: str) -> Pipeline:
    ring = stage.resource(pipeline)
    assert isinstance(ring, Pipeline)
    return ring


def _slot(cg: Emitter, facts: RingFacts, side: Side) -> tuple[str, str]:
    """The stage at hand under a name that outlives the cursor's move, and the phase variable."""
    stage, phase = cg.ring_cursor(facts.pipeline, side)
    slot = cg.fresh(f"{facts.pipeline}_slot")
    cg.line(f"const int {slot} = {stage};")
    return slot, phase


def _emit_advance(cg: Emitter, facts: RingFacts, side: Side) -> None:
    stage, phase = cg.ring_cursor(facts.pipeline, side)
    if facts.stages == 1:
        cg.line(f"{phase} ^= 1;")
    else:
        cg.line(f"if (++{stage} == {facts.stages}) {{ {stage} = 0; {phase} ^= 1; }}")


# -- meaning ---------------------------------------------------------------------------------------


def mean_acquire(unit: Unit, pipeline: str, site: Site) -> Generator[Wait, None, int]:
    """Wait for a free stage, announce the fill's bytes; returns the stage."""
    fill = ring_facts(unit.program, pipeline).fill(site)
    if fill.bytes is None:
        unit.fail(UNKNOWN_FILL, f"ring {pipeline}: the bytes of the fill are unknown: {fill.why}")
    stage, phase = unit.cursor(pipeline, "fill")
    empty = unit.empty_barrier(pipeline, stage)
    yield Wait(
        lambda: empty.passed(phase ^ 1),
        f"empty[{stage}] of ring {pipeline}, parity {phase ^ 1}",
        empty,
    )
    full = unit.full_barrier(pipeline, stage, pairs.home(_ring(unit, pipeline)))
    if fill.early:
        full.arrive(unit.threads // 32, tx=fill.bytes)
    elif fill.bytes:
        full.expect_tx(fill.bytes)
    unit.advance(pipeline, "fill")
    return stage


def mean_commit(unit: Unit, pipeline: str, stage: int, fill: Fill) -> Generator[Wait, None, None]:
    """End a fill."""
    if fill.early:
        return
    facts = ring_facts(unit.program, pipeline)
    full = unit.full_barrier(pipeline, stage, pairs.home(_ring(unit, pipeline)))
    if facts.arrival == "threads":
        unit.arrive_when_done("cp_async", full, unit.threads)
        return
    if facts.drain:
        unit.commit("cp_async")
        what = f"cp.async into ring {pipeline}"
        yield Wait(lambda: unit.drained("cp_async", 0), what, drains=True)
    if facts.fence:
        unit.fence_proxy()
    full.arrive(unit.threads // 32)


def mean_wait(unit: Unit, pipeline: str) -> Generator[Wait, None, int]:
    """Wait for the next full stage and return it."""
    stage, phase = unit.cursor(pipeline, "use")
    full = unit.full_barrier(pipeline, stage)
    if not _follows(unit, pipeline):
        yield Wait(
            lambda: full.passed(phase), f"full[{stage}] of ring {pipeline}, parity {phase}", full
        )
    unit.advance(pipeline, "use")
    return stage


def mean_release(unit: Unit, pipeline: str, stage: int) -> None:
    """Hand a stage back."""
    if _follows(unit, pipeline):
        return
    ranks = range(unit.cluster_size) if _ring(unit, pipeline).clustered else [None]
    for rank in ranks:
        unit.empty_barrier(pipeline, stage, rank).arrive(unit.threads // 32)


def _follows(unit: Unit, pipeline: str) -> bool:
    """Whether the ring is a pair's, and the other CTA uses it for this one."""
    return _ring(unit, pipeline).pair and unit.block_rank != pairs.LEADER


# -- the primitives --------------------------------------------------------------------------------


def _name(call: Call) -> str:
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    return ref.name


def _typed_ring(t: TypingContext, call: Call) -> Pipeline:
    ring = t.resource(_name(call))
    if not isinstance(ring, Pipeline):
        t.fail(f"ring must be a pipeline, got {_name(call)}", call.args[0])
    return ring


def _gives_slot(t: TypingContext, call: Call) -> Type:
    return Slot(_typed_ring(t, call).name)


def _takes_slot(t: TypingContext, call: Call) -> Type:
    ring, slot = _typed_ring(t, call), _slot_operand(call)
    if slot.type != Slot(ring.name):
        t.fail(
            f"slot must be a slot of {ring.name}, got {slot.type}",
            slot,
            helps=(f"use the result of acquire({ring.name}) or wait({ring.name})",),
        )
    return Void()


def _slot_operand(call: Call) -> Expr:
    slot = call.args[1]
    assert slot is not None
    return slot


def _call_acquire(cg: Emitter, call: Call, dest: str | None) -> str:
    return emit_acquire(cg, _name(call), call)


def _call_commit(cg: Emitter, call: Call, dest: str | None) -> None:
    fill = ring_facts(cg.program, _name(call)).fill_ended_by(call)
    emit_commit(cg, _name(call), cg.scalar(_slot_operand(call)), fill)


def _call_wait(cg: Emitter, call: Call, dest: str | None) -> str:
    return emit_wait(cg, _name(call))


def _call_release(cg: Emitter, call: Call, dest: str | None) -> None:
    emit_release(cg, _name(call), cg.scalar(_slot_operand(call)))


def _do_acquire(unit: Unit, call: Call) -> Generator[Wait, None, int]:
    return mean_acquire(unit, _name(call), call)


def _do_commit(unit: Unit, call: Call) -> Generator[Wait, None, None]:
    fill = ring_facts(unit.program, _name(call)).fill_ended_by(call)
    return mean_commit(unit, _name(call), int(unit.eval(_slot_operand(call))), fill)


def _do_wait(unit: Unit, call: Call) -> Generator[Wait, None, int]:
    return mean_wait(unit, _name(call))


def _do_release(unit: Unit, call: Call) -> None:
    mean_release(unit, _name(call), int(unit.eval(_slot_operand(call))))


def _cost(call: Call, threads: int) -> Cost:
    """Barrier instruction, election and cursor: about six instructions a warp."""
    return Cost(issue=6 * (threads // 32))


_RING = Param("ring", "resource")
_ROWS: Mapping[str, tuple[Literal["wait", "arrive"], Callable[..., Any], Callable[..., Any], str]]
_ROWS = {
    "acquire": (
        "wait",
        _do_acquire,
        _call_acquire,
        "Wait until the next stage of the ring is free and return its slot. The bytes of the TMA"
        " and bulk copies up to the commit are announced on the full barrier.",
    ),
    "commit": (
        "arrive",
        _do_commit,
        _call_commit,
        "End the fill of a slot of `ring`. After plain stores, stmatrix or cp.async every producer"
        " warp arrives, behind a proxy fence if the consumers read through the async proxy.",
    ),
    "wait": (
        "wait",
        _do_wait,
        _call_wait,
        "Wait until the next stage of the ring is full and return its slot. In a paired ring only"
        " the CTA that leads waits, for the fills of both.",
    ),
    "release": (
        "arrive",
        _do_release,
        _call_release,
        "Hand a slot of `ring` back to the producer, one arrival a warp. Asynchronous reads of the"
        " slot (wgmma, TMA store) must be complete before.",
    ),
}

for _op, (_action, _meaning, _emission, _doc) in _ROWS.items():
    _gives = _action == "wait"

    def _effects(call: Call, action: Literal["wait", "arrive"] = _action) -> Effects:
        return (SyncEffect(action, "pipeline"),)

    register(
        Primitive(
            name=_op,
            params=(_RING,) if _gives else (_RING, Param("slot")),
            doc=_doc,
            source="PTX ISA 9.0, Parallel Synchronization and Communication: mbarrier",
            typing=_gives_slot if _gives else _takes_slot,
            effects=_effects,
            meaning=_meaning,
            cost=_cost,
            emit={"": _emission},
            convergent=True,
        )
    )
