"""Which hardware barriers (bar.sync ids) a program uses; the emitter and the verifier share it.

Id 0 is the CTA's. Declared named barriers come next, in order, then one id for each role that
synchronises itself, then one for each warpgroup of the roles that synchronise their units. A unit
of one warp needs no id: it uses ``__syncwarp``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from cake.ir.nodes import Block, walk_calls
from cake.ir.program import NamedBarrier, Program
from cake.ops.base import SyncEffect, lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class BarrierIds:
    """``named`` holds the id of each barrier's first slot, ``role`` the id by role; ``unit`` holds
    the id of each role's first unit, the other units of the role follow. ``count`` includes id 0;
    the hardware has 16 (PTX ISA, "barrier")."""

    named: Mapping[str, int]
    role: Mapping[str, int]
    unit: Mapping[str, int]
    count: int


@lru_cache(maxsize=256)
def barrier_ids(program: Program) -> BarrierIds:
    """Number the hardware barriers of a program."""
    free = 1
    named, role, unit = {}, {}, {}
    for b in program.find(NamedBarrier):
        named[b.name] = free
        free += b.slots
    for r in program.role_decls():
        if r.warps > 1 and _synchronises(program.body_of(r.name), "role"):
            role[r.name] = free
            free += 1
    for r in program.role_decls():
        if r.warpgroup and _synchronises(program.body_of(r.name), "unit"):
            unit[r.name] = free
            free += r.units
    return BarrierIds(named=named, role=role, unit=unit, count=free)


def _synchronises(body: Block, what: str) -> bool:
    wanted = SyncEffect("barrier", what)
    primitives = ((call, lookup(call.op)) for call in walk_calls(body))
    return any(p is not None and wanted in p.effects(call) for call, p in primitives)
