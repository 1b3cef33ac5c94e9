"""Raw mbarriers: ``arrive``, ``expect_tx`` and ``barrier_wait``, for what a ring cannot say."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.dtypes import I32, U32
from cake.ir.nodes import Call, Const, Expr, ResourceRef
from cake.ir.program import Barrier, Cluster
from cake.ir.types import Scalar
from cake.ops import check, completion, ptx_mbarrier
from cake.ops.base import Param, SyncEffect, Typed, TypingContext, at, static
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import define

MAX_TX = 2**20 - 1
"""Most bytes and arrivals of one phase (PTX ISA, "Contents of the mbarrier object")."""


def _barrier(t: TypingContext, call: Call) -> Barrier:
    ref = call.args[0]
    assert isinstance(ref, ResourceRef)
    barrier = t.resource(ref.name)
    if not isinstance(barrier, Barrier):
        t.fail(f"barrier must be declared with barrier(...), got {ref.name}", ref)
    return barrier


def _slot(t: TypingContext, call: Call) -> Expr | None:
    return completion.slot_of(t, _barrier(t, call), at(call, "slot")[0])


def _arrive_typing(t: TypingContext, call: Call) -> Typed:
    barrier, slot = _barrier(t, call), _slot(t, call)
    count, peer = at(call, "count", "peer")
    if count is not None:
        n = check.static_int(t, count, "count", 1, MAX_TX)
        if n * (t.unit_threads // 32) > barrier.arrivals:
            t.fail(
                f"{t.unit_threads // 32} warps arriving {n} times exceed the {barrier.arrivals}"
                f" arrivals of {barrier.name}",
                count,
            )
        if not t.target.mbarrier_tx:
            t.fail(f"{t.target.name} counts single arrivals only", count, code="CK201")
    if peer is not None:
        if not t.target.dsmem:
            t.fail(f"{t.target.name} has no clusters", peer, code="CK201")
        peer = check.uniform(t, check.integer(t, peer, "peer"), "peer")
    return Typed(call.type, (call.args[0], slot, count, peer))


def _expect_typing(t: TypingContext, call: Call) -> Typed:
    slot, size = _slot(t, call), call.args[2]
    assert size is not None
    check.static_int(t, size, "bytes", 1, MAX_TX)
    return Typed(call.type, (call.args[0], slot, size))


def _wait_typing(t: TypingContext, call: Call) -> Typed:
    slot, parity = _slot(t, call), call.args[2]
    e = check.uniform(t, check.integer(t, parity, "parity"), "parity")
    if e.type not in (Scalar(I32), Scalar(U32)):
        t.fail(f"parity must be i32 or u32, got {e.type}", parity)
    if isinstance(e, Const) and e.value not in (0, 1):
        t.fail(f"parity is 0 or 1, got {e.value}", parity, helps=("write phase & 1",))
    return Typed(call.type, (call.args[0], slot, e))


def _where(unit: Unit, call: Call) -> tuple[str, int]:
    ref, slot = call.args[0], call.args[1]
    assert isinstance(ref, ResourceRef)
    assert slot is not None
    number = int(unit.eval(slot))
    barrier = unit.resource(ref.name)
    assert isinstance(barrier, Barrier)
    if not 0 <= number < barrier.slots:
        unit.fail("CK502", f"slot {number} is outside the {barrier.slots} slots of {ref.name}")
    return ref.name, number


def _arrive_meaning(unit: Unit, call: Call) -> None:
    name, slot = _where(unit, call)
    peer = call.args[3]
    rank = None if peer is None else int(unit.eval(peer))
    unit.mbarrier(name, slot, rank).arrive(static(call, "count") * (unit.threads // 32))


def _expect_meaning(unit: Unit, call: Call) -> None:
    name, slot = _where(unit, call)
    unit.mbarrier(name, slot).expect_tx(static(call, "bytes"))


def _wait_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    name, slot = _where(unit, call)
    parity = call.args[2]
    assert parity is not None
    phase = int(unit.eval(parity)) & 1
    barrier = unit.mbarrier(name, slot)
    yield Wait(lambda: barrier.passed(phase), f"{name}[{slot}], parity {phase}", barrier)


def _address(cg: Emitter, call: Call) -> str:
    ref, slot = call.args[0], call.args[1]
    assert isinstance(ref, ResourceRef)
    assert slot is not None
    return cg.mbarrier(ref.name, cg.scalar(slot))


def _emit_arrive(cg: Emitter, call: Call) -> None:
    bar, peer, count = _address(cg, call), call.args[3], static(call, "count")
    rank = None if peer is None else cg.scalar(peer)
    cg.line("__syncwarp();")
    with cg.block("if (lane == 0)"):
        if rank is None:
            cg.line(ptx_mbarrier.arrive(cg, bar, count))
        else:
            cg.line(ptx_mbarrier.arrive_remote(cg, bar, rank, count))


def _emit_expect(cg: Emitter, call: Call) -> None:
    bar = _address(cg, call)
    with cg.elected():
        cg.line(ptx_mbarrier.expect_tx(cg, bar, str(static(call, "bytes"))))


def _emit_wait(cg: Emitter, call: Call) -> None:
    parity = call.args[2]
    assert parity is not None
    # In a cluster the arrivals may be a peer's, whose writes the wait must acquire.
    cluster = bool(cg.program.find(Cluster))
    cg.line(ptx_mbarrier.wait(cg, _address(cg, call), cg.scalar(parity), cluster=cluster))


_SOURCE = "PTX ISA 9.0, Parallel Synchronization and Communication: mbarrier"
_BARRIER = Param("barrier", "resource")

define(
    "arrive",
    SyncEffect("arrive", "mbarrier"),
    params=(
        _BARRIER,
        Param("slot"),
        Param("count", "static", 1),
        Param("peer", default=None, keyword_only=True),
    ),
    doc="Each warp of the unit arrives `count` times on slot `slot` of an mbarrier, after all its"
    " lanes got here; releases the warp's earlier accesses. A warpgroup thus makes 4 * count"
    " arrivals. peer: rank of the CTA of the cluster whose barrier is meant.",
    source=_SOURCE + ".arrive",
    typing=_arrive_typing,
    meaning=_arrive_meaning,
    emit=_emit_arrive,
    issue=3,
)
define(
    "expect_tx",
    SyncEffect("arrive", "transaction"),
    params=(_BARRIER, Param("slot"), Param("bytes", "static")),
    doc="The phase at hand of slot `slot` of `barrier` also waits for `bytes` bytes of copies."
    " Counts once for the unit and is no arrival; it comes before the last arrival of the phase.",
    source=_SOURCE + ".expect_tx",
    typing=_expect_typing,
    meaning=_expect_meaning,
    emit=_emit_expect,
    requires="mbarrier_tx",
    issue=2,
)
define(
    "barrier_wait",
    SyncEffect("wait", "mbarrier"),
    params=(_BARRIER, Param("slot"), Param("parity")),
    doc="Wait until the phase of the given parity of an mbarrier's slot is complete; acquires what"
    " the arriving threads released. A fresh barrier passes parity 1 at once and blocks parity 0.",
    source=_SOURCE + ".try_wait",
    typing=_wait_typing,
    meaning=_wait_meaning,
    emit=_emit_wait,
    issue=2,
)
