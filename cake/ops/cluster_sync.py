"""``cluster_sync()``, ``cluster_arrive()`` and ``cluster_wait()``: barriers over a cluster."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call
from cake.ir.types import Type
from cake.ops.base import SyncEffect, TypingContext
from cake.ops.cta_sync import role_threads
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import define


def _typing(t: TypingContext, call: Call) -> Type | None:
    try:
        t.resource("cluster")
    except KeyError:
        t.fail("the schedule has no cluster", helps=("write cluster(2) before the roles",))
    return None


def _threads(unit: Unit) -> int:
    return role_threads(unit.program) * unit.cluster_size


def _sync_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    yield from unit.barrier_sync("cluster", _threads(unit))


def _arrive_meaning(unit: Unit, call: Call) -> None:
    unit.barrier_arrive("cluster", _threads(unit))


def _wait_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    yield from unit.barrier_wait("cluster", _threads(unit))


def emit_cluster_arrive(cg: Emitter) -> None:
    """Arrive for this thread; releases its accesses to the cluster.

    Not the aligned form: roles reach the barrier at instructions of their own.
    """
    code = """\
__device__ __forceinline__ void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release;" ::: "memory");
}"""
    cg.line(f"{cg.helper('cluster_arrive', code)}();")


def emit_cluster_wait(cg: Emitter) -> None:
    """Wait until all threads of the cluster have arrived; acquires what they released."""
    code = """\
__device__ __forceinline__ void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire;" ::: "memory");
}"""
    cg.line(f"{cg.helper('cluster_wait', code)}();")


def _emit_sync(cg: Emitter, call: Call) -> None:
    emit_cluster_arrive(cg)
    emit_cluster_wait(cg)


_SOURCE = "PTX ISA 9.0, barrier.cluster"

define(
    "cluster_sync",
    SyncEffect("barrier", "cluster"),
    doc="Barrier over all threads of all roles of all CTAs of the cluster; each of them executes it"
    " equally often.",
    source=_SOURCE,
    typing=_typing,
    meaning=_sync_meaning,
    emit=_emit_sync,
    requires="cluster",
    issue=2,
)
define(
    "cluster_arrive",
    SyncEffect("arrive", "cluster"),
    doc="First half of cluster_sync: arrive without waiting. cluster_wait must follow before the"
    " next cluster_arrive.",
    source=_SOURCE + ".arrive",
    typing=_typing,
    meaning=_arrive_meaning,
    emit=lambda cg, call: emit_cluster_arrive(cg),
    requires="cluster",
)
define(
    "cluster_wait",
    SyncEffect("wait", "cluster"),
    doc="Second half of cluster_sync: wait for everyone's cluster_arrive.",
    source=_SOURCE + ".wait",
    typing=_typing,
    meaning=_wait_meaning,
    emit=lambda cg, call: emit_cluster_wait(cg),
    requires="cluster",
)
