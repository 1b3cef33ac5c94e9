"""``unit_sync()`` and ``role_sync()``: barriers over the unit's, or the whole role's, threads."""

from __future__ import annotations

from collections.abc import Iterator

from cake.ir.nodes import Call
from cake.ir.program import Role
from cake.ops.barrier_ids import barrier_ids
from cake.ops.base import SyncEffect
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.sync import barrier_sync, define


def emit_unit_sync(cg: Emitter) -> None:
    """All threads of the unit meet here and see each other's memory accesses."""
    if cg.unit_threads == 32:
        cg.line("__syncwarp();")
        return
    first = barrier_ids(cg.program).unit[cg.role]
    role = cg.resource(cg.role)
    assert isinstance(role, Role)
    ident = str(first) if role.units == 1 else f"{first} + unit"
    cg.line(barrier_sync(cg, ident, cg.unit_threads, one_site=True))


def mean_unit_sync(unit: Unit) -> Iterator[Wait]:
    """A unit runs in lock-step, so its own barrier is passed at once."""
    yield from unit.barrier_sync(f"unit:{unit.role}:{unit.index}", unit.threads)


def _unit_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    return mean_unit_sync(unit)


def _emit_unit(cg: Emitter, call: Call) -> None:
    emit_unit_sync(cg)


def _role_meaning(unit: Unit, call: Call) -> Iterator[Wait]:
    role = unit.resource(unit.role)
    assert isinstance(role, Role)
    yield from unit.barrier_sync(f"role:{role.name}", role.warps * 32)


def _emit_role(cg: Emitter, call: Call) -> None:
    role = cg.resource(cg.role)
    assert isinstance(role, Role)
    if role.warps == 1:
        cg.line("__syncwarp();")
        return
    ident = str(barrier_ids(cg.program).role[cg.role])
    cg.line(barrier_sync(cg, ident, role.warps * 32, one_site=True))


define(
    "unit_sync",
    SyncEffect("barrier", "unit"),
    doc="Barrier over the threads of the executing unit: a warp, or a warpgroup through a hardware"
    " barrier of its own. Orders the threads' accesses to memory by the generic proxy.",
    source="CUDA C++ Programming Guide, __syncwarp; PTX ISA 9.0, bar{.cta}.sync",
    meaning=_unit_meaning,
    emit=_emit_unit,
)
define(
    "role_sync",
    SyncEffect("barrier", "role"),
    doc="Barrier over all threads of the role, through a hardware barrier of its own. Every unit of"
    " the role executes it equally often.",
    source="PTX ISA 9.0, bar{.cta}.sync",
    meaning=_role_meaning,
    emit=_emit_role,
)
