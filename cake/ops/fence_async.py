"""``fence_async()``: make generic writes to shared memory visible to the async proxy."""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ops.base import SyncEffect
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.sync import define


def fence_proxy_async(cg: Emitter) -> str:
    """The fence as one C++ statement; every writing thread executes it."""
    code = """\
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}"""
    return f"{cg.helper('fence_proxy_async', code)}();"


def _meaning(unit: Unit, call: Call) -> None:
    unit.fence_proxy()


define(
    "fence_async",
    SyncEffect("fence", "proxy"),
    doc="Order this thread's earlier generic accesses to shared memory (st, stmatrix, finished"
    " cp.async) before later accesses by the async proxy (TMA, wgmma, tcgen05). Every writing"
    " thread executes it, and a barrier between the writers and the issuer follows.",
    source="PTX ISA 9.0, membar/fence: fence.proxy.async; Memory Consistency Model, proxies",
    meaning=_meaning,
    emit=lambda cg, call: cg.line(fence_proxy_async(cg)),
    requires="bulk_copy",
    convergent=False,
)
