"""Execution of statements by one unit, as a coroutine that yields where others may go first."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
from enum import Enum, auto
from functools import lru_cache
from typing import Any

import numpy as np

from cake.ir.nodes import (
    Assign,
    Block,
    Bracket,
    Call,
    Do,
    Expr,
    For,
    If,
    SetElement,
    Stmt,
    TileLoop,
    While,
    walk_exprs,
)
from cake.ir.program import Tiles
from cake.ops import pipeline_ops
from cake.ops.base import Access, lookup
from cake.ops.machine import Wait
from cake.ops.rings import ring_facts
from cake.simulate.codes import NOT_SIMULATED
from cake.simulate.grid import coordinates, length
from cake.simulate.unit import UnitState


class Pause(Enum):
    """Where another unit may go first."""

    READ = auto()
    """After a statement that read memory."""
    EFFECT = auto()
    """After a statement that others may notice."""
    SPIN = auto()
    """After an iteration of a while loop."""


Step = Wait | Pause


def run_block(u: UnitState, body: Block) -> Iterator[Step]:
    """Execute a block."""
    for s in body:
        u.place = s
        yield from _statement(u, s)


def _statement(u: UnitState, s: Stmt) -> Iterator[Step]:
    if isinstance(s, Assign):
        yield from _assign(u, s)
        yield from _pauses(s)
    elif isinstance(s, Do):
        yield from _perform(u, s.call)
        yield from _pauses(s)
    elif isinstance(s, SetElement):
        u.assign_element(s.array, s.index, u.eval(s.value))
        yield from _pauses(s)
    elif isinstance(s, For):
        yield from _for(u, s)
    elif isinstance(s, If):
        yield from _if(u, s)
    elif isinstance(s, While):
        yield from _while(u, s)
    elif isinstance(s, TileLoop):
        yield from _tile_loop(u, s)
    elif isinstance(s, Bracket):
        yield from _bracket(u, s)
    else:
        u.fail(NOT_SIMULATED, f"{type(s).__name__} cannot stand inside a role")


@lru_cache(maxsize=4096)
def _pauses(s: Stmt) -> tuple[Pause, ...]:
    """Nothing for a statement that touches only its own registers."""
    effects = [
        effect
        for call in walk_exprs(s)
        if isinstance(call, Call) and (primitive := lookup(call.op)) is not None
        for effect in primitive.effects(call)
        if not (isinstance(effect, Access) and effect.space == "regs")
    ]
    if not effects:
        return ()
    reads = all(isinstance(e, Access) and e.action == "read" for e in effects)
    return (Pause.READ,) if reads else (Pause.EFFECT,)


def _perform(u: UnitState, call: Call) -> Generator[Step, None, Any]:
    """A primitive that may block; the coroutine's result is its value."""
    result = u.call(call)
    if inspect.isgenerator(result):
        result = yield from result
    return u.settled(call, result)


# -- assignment ------------------------------------------------------------------------------------


def _assign(u: UnitState, s: Assign) -> Iterator[Step]:
    value = (yield from _perform(u, s.value)) if isinstance(s.value, Call) else u.eval(s.value)
    values = value if len(s.targets) > 1 else (value,)
    for name, declares, v in zip(s.targets, s.declares, values, strict=True):
        if declares or name not in u.variables:
            u.variables[name] = v if _is_alias(s.value) else _own(u, v)
        else:
            u.assign(name, v)


def _is_alias(e: Expr) -> bool:
    """``lanes`` gives an array a second name on purpose."""
    return isinstance(e, Call) and e.op == "lanes"


def _own(u: UnitState, value: Any) -> Any:
    """The value, or a copy of an array that is part of something else: variables do not alias."""
    if np.ndim(value) < 2:
        return value
    shared = value.base is not None or any(value is v for v in u.variables.values())
    return value.copy() if shared else value


# -- control flow ----------------------------------------------------------------------------------


def _masked(u: UnitState, mask: Any, body: Block) -> Iterator[Step]:
    u.masks.append(mask)
    try:
        yield from run_block(u, body)
    finally:
        u.masks.pop()


def _if(u: UnitState, s: If) -> Iterator[Step]:
    cond = u.eval(s.cond)
    if np.ndim(cond) == 0:
        yield from run_block(u, s.then if bool(cond) else s.orelse)
        return
    taken, other = u.mask & cond, u.mask & ~cond
    if taken.any():
        yield from _masked(u, taken, s.then)
    if other.any() and s.orelse:
        yield from _masked(u, other, s.orelse)


def _while(u: UnitState, s: While) -> Iterator[Step]:
    active: Any = u.mask
    while True:
        u.place = s
        # A thread that has left the loop neither looks at the condition again nor comes back.
        u.masks.append(active)
        cond = u.eval(s.cond)
        u.masks.pop()
        if np.ndim(cond) == 0:
            if not bool(cond):
                return
            yield from run_block(u, s.body)
        else:
            active = active & cond
            if not active.any():
                return
            yield from _masked(u, active, s.body)
        yield Pause.SPIN


def _for(u: UnitState, s: For) -> Iterator[Step]:
    start, stop, step = u.eval(s.start), u.eval(s.stop), u.eval(s.step)
    if int(np.min(step)) <= 0:
        u.fail(NOT_SIMULATED, f"the step of a range is positive, got {int(np.min(step))}")
    if np.ndim(start) == np.ndim(stop) == np.ndim(step) == 0:
        kind = np.asarray(start).dtype.type
        for i in range(int(start), int(stop), int(step)):
            u.variables[s.var] = kind(i)
            yield from run_block(u, s.body)
        return
    each: Any = np.broadcast_to(np.asarray(start), (u.threads,)).copy()
    while True:
        active = u.mask & (each < stop)
        if not active.any():
            return
        u.variables[s.var] = each.copy()
        yield from _masked(u, active, s.body)
        each += step


def _tile_loop(u: UnitState, s: TileLoop) -> Iterator[Step]:
    tiles = u.program.resource(s.tiles)
    assert isinstance(tiles, Tiles)
    extents = [int(u.eval(e)) for e in tiles.extents]
    walked = length(u.program, tiles, extents)
    for linear in range(u.cta.block, walked, u.cta.launch.grid_size):
        point = coordinates(u.program, tiles, extents, linear)
        if point is None:
            continue
        for name, c in zip(s.vars, point, strict=True):
            u.variables[name] = np.int32(c)
        yield from run_block(u, s.body)


def _bracket(u: UnitState, s: Bracket) -> Iterator[Step]:
    if s.side == "fill":
        stage = yield from pipeline_ops.mean_acquire(u, s.pipeline, s)
    else:
        stage = yield from pipeline_ops.mean_wait(u, s.pipeline)
    u.variables[s.slot] = stage
    yield Pause.EFFECT
    yield from run_block(u, s.body)
    u.place = s
    if s.side == "fill":
        fill = ring_facts(u.program, s.pipeline).fill(s)
        yield from pipeline_ops.mean_commit(u, s.pipeline, stage, fill)
    else:
        pipeline_ops.mean_release(u, s.pipeline, stage)
    yield Pause.EFFECT
