"""The shape that synchronising statements share: no result, a fixed effect, a few instructions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from cake.ir.nodes import Call
from cake.ir.types import Type, Void
from cake.ops.base import (
    Cost,
    Effects,
    Emit,
    Meaning,
    Param,
    Primitive,
    SyncEffect,
    TypingContext,
    no_effects,
    register,
)
from cake.ops.emit import Emitter


def define(
    name: str,
    *effects: SyncEffect,
    more_effects: Callable[[Call], Effects] = no_effects,
    doc: str,
    source: str,
    meaning: Meaning,
    emit: Callable[[Emitter, Call], None],
    typing: Callable[[TypingContext, Call], Any] | None = None,
    params: tuple[Param, ...] = (),
    requires: str | None = None,
    convergent: bool = True,
    units: frozenset[str] = frozenset({"warp", "warpgroup"}),
    issue: int = 1,
) -> Primitive:
    """Register a synchronising statement that takes ``issue`` instructions a warp.

    ``more_effects`` are those that depend on the operands. ``typing`` may replace the operands: it
    returns None or a ``Typed``.
    """

    def rule(t: TypingContext, call: Call) -> Any:
        changed: Type | None = None if typing is None else typing(t, call)
        return Void() if changed is None else changed

    def all_effects(call: Call) -> Effects:
        return (*effects, *more_effects(call))

    def emission(cg: Emitter, call: Call, dest: str | None) -> None:
        emit(cg, call)

    emitted: Emit = emission
    return register(
        Primitive(
            name=name,
            params=params,
            doc=doc,
            source=source,
            typing=rule,
            effects=all_effects,
            meaning=meaning,
            cost=lambda call, threads: Cost(issue=issue * (threads // 32)),
            emit={"": emitted},
            requires=requires,
            convergent=convergent,
            units=units,
        )
    )


def barrier_sync(cg: Emitter, ident: str, threads: int, *, one_site: bool) -> str:
    """Arrive at a hardware barrier and wait for its ``threads``, as one C++ statement.

    ``one_site``: all threads execute this very instruction. Otherwise the unaligned form is
    needed, since roles reach the barrier at instructions of their own (PTX ISA, "barrier").
    """
    op, name = ("bar.sync", "bar_sync") if one_site else ("barrier.sync", "barrier_sync")
    code = f"""\
__device__ __forceinline__ void {name}(unsigned id, unsigned threads) {{
  asm volatile("{op} %0, %1;" ::"r"(id), "r"(threads) : "memory");
}}"""
    return f"{cg.helper(name, code)}({ident}, {threads});"
