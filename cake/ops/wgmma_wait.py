"""``wgmma_wait``: wait for the products that a warpgroup has in flight."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops import check
from cake.ops.base import (
    Cost,
    Effects,
    Param,
    Primitive,
    SyncEffect,
    TypingContext,
    operand,
    register,
    static,
)
from cake.ops.machine import Unit, Wait
from cake.ops.wgmma_emission import emit_wait


def _typing(t: TypingContext, call: Call) -> Type:
    check.static_int(t, operand(call, "pending"), "the number of pending groups", 0, 7)
    return Void()


def _effects(call: Call) -> Effects:
    return (SyncEffect("drain", "wgmma"),)


def _meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    pending: int = static(call, "pending")
    what = f"wgmma groups, {pending} pending"
    yield Wait(lambda: unit.drained("wgmma", pending), what, drains=True)


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=threads // 32)


register(
    Primitive(
        name="wgmma_wait",
        params=(Param("pending", "static"),),
        doc="""Wait until at most ``pending`` (0 to 7) wgmma groups of the warpgroup are unfinished.

Every ``wgmma`` is one group. Groups finish in order: ``wgmma_wait(1)`` completes all but the
last. Their accumulators may be read, and their operands overwritten, after it.""",
        source="PTX ISA, wgmma.wait_group",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"sm_90": emit_wait},
        requires="wgmma",
        convergent=True,
        units=frozenset({"warpgroup"}),
    )
)
