"""``fence_async()``: make generic writes to shared memory visible to the async proxy."""

from __future__ import annotations

from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops.base import Cost, Effects, Primitive, SyncEffect, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def fence_proxy_async(cg: Emitter) -> str:
    """The fence as one C++ statement; every writing thread executes it."""
    code = """\
__device__ __forceinline__ void fence_proxy_async() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}"""
    return f"{cg.helper('fence_proxy_async', code)}();"


def _typing(t: TypingContext, call: Call) -> Type:
    return Void()


def _effects(call: Call) -> Effects:
    return (SyncEffect("fence", "proxy"),)


def _meaning(unit: Unit, call: Call) -> None:
    unit.fence_proxy()


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=threads // 32)


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    cg.line(fence_proxy_async(cg))


register(
    Primitive(
        name="fence_async",
        params=(),
        doc="Order this thread's earlier generic accesses to shared memory (st, stmatrix, finished"
        " cp.async) before later accesses by the async proxy (TMA, wgmma, tcgen05). Every writing"
        " thread executes it, and a barrier between the writers and the issuer follows.",
        source="PTX ISA 9.0, membar/fence: fence.proxy.async; Memory Consistency Model, proxies",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="bulk_copy",
    )
)
