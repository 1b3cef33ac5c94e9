"""Where an asynchronous copy into shared memory completes.

A copy into ``X[s]``, where ``s`` is a slot of ring ``p``, completes on the full barrier of ``p`` at
``s``; if the ring is a pair's, on that of the CTA that leads. A copy with ``barrier=b, slot=i``
completes on slot i of the raw mbarrier ``b``.
"""

from __future__ import annotations

from typing import Any

from cake.ir.nodes import Call, Const, Expr, ResourceRef, View
from cake.ir.program import Barrier, Pipeline
from cake.ir.types import Slot
from cake.ops import check, pairs, ptx_mbarrier
from cake.ops.base import Param, TypingContext, at
from cake.ops.emit import Emitter
from cake.ops.machine import MBarrier, Unit

PARAMS = (
    Param("barrier", "resource", None, keyword_only=True),
    Param("slot", "value", 0, keyword_only=True),
)
"""Parameters of a copy that may complete on a raw mbarrier."""


def ring_of(call: Call, view: Expr | None) -> str | None:
    """The ring on whose full barrier a copy into ``view`` completes, None if on no ring."""
    raw = at(call, "barrier")[0]
    if raw is None and isinstance(view, View) and view.stage is not None:
        stage = view.stage.type
        return stage.pipeline if isinstance(stage, Slot) else None
    return None


def typed(t: TypingContext, call: Call, view: Expr) -> Expr | None:
    """Check that a copy into ``view`` has a barrier to complete on; returns the slot operand."""
    raw, slot = at(call, "barrier", "slot")
    if raw is None:
        if slot is not None:
            t.fail("slot= goes with barrier=", slot)
        if ring_of(call, view) is None:
            t.fail(
                "the copy has no barrier to complete on",
                view,
                helps=(
                    "index the destination with a ring's slot: `with ring.fill() as s: ... X[s]`",
                    "or name a raw mbarrier: barrier=b, slot=i",
                ),
            )
        ring = t.resource(str(ring_of(call, view)))
        assert isinstance(view, View)
        assert isinstance(ring, Pipeline)
        if view.base not in ring.buffers:
            t.fail(f"{view.base} is not a buffer of ring {ring.name}", view)
        if ring.pair and call.op != "tma_load":
            t.fail(f"{call.op} cannot complete in the other CTA, but ring {ring.name} is paired")
        return None
    assert isinstance(raw, ResourceRef)
    declared = t.resource(raw.name)
    if not isinstance(declared, Barrier):
        t.fail(f"barrier must be an mbarrier declared with barrier(...), got {raw.name}", raw)
    return slot_of(t, declared, slot)


def slot_of(t: TypingContext, bar: Barrier, slot: Expr | None) -> Expr | None:
    """A uniform slot of a raw mbarrier; an omitted one is slot 0, a ring's slot is its stage."""
    if slot is None or isinstance(slot.type, Slot):
        return slot
    e = check.uniform(t, check.integer(t, slot, "slot"), "slot")
    if isinstance(e, Const) and not 0 <= e.value < bar.slots:
        t.fail(
            f"slot {e.value} is outside the {bar.slots} slots of {bar.name}",
            slot,
            facts={"slot": e.value, "slots": bar.slots},
        )
    return e


def address(cg: Emitter, call: Call, view: Expr) -> str:
    """Shared address of the barrier that a copy into ``view`` completes on."""
    raw, slot = at(call, "barrier", "slot")
    if isinstance(raw, ResourceRef):
        return cg.mbarrier(raw.name, "0" if slot is None else cg.scalar(slot))
    ring = ring_of(call, view)
    assert ring is not None
    assert isinstance(view, View)
    assert view.stage is not None
    own = cg.full_barrier(ring, cg.scalar(view.stage))
    return ptx_mbarrier.address_in(cg, own, str(pairs.LEADER)) if in_pair(cg, call, view) else own


def mbarrier(unit: Unit, call: Call, view: Expr, rank: int | None = None) -> MBarrier:
    """The barrier that a copy into ``view`` completes on, in this CTA or in ``rank``."""
    raw, slot = at(call, "barrier", "slot")
    if isinstance(raw, ResourceRef):
        return unit.mbarrier(raw.name, 0 if slot is None else _int(unit.eval(slot)), rank)
    ring = ring_of(call, view)
    assert ring is not None
    assert isinstance(view, View)
    assert view.stage is not None
    leader = pairs.LEADER if in_pair(unit, call, view) else rank
    return unit.full_barrier(ring, _int(unit.eval(view.stage)), leader)


def in_pair(stage: Emitter | Unit, call: Call, view: Expr) -> bool:
    """Whether the copy completes on the full barrier of a paired ring, in the leading CTA."""
    ring = ring_of(call, view)
    declared = None if ring is None else stage.resource(ring)
    return isinstance(declared, Pipeline) and declared.pair


def _int(value: Any) -> int:
    """A uniform value as a plain int."""
    return int(value)
