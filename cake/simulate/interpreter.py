"""Execution of statements by one unit, as a coroutine that yields where it may wait."""

from __future__ import annotations

import inspect
from collections.abc import Generator, Iterator
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
    VarRef,
    While,
)
from cake.ir.program import Tiles
from cake.ir.types import Scalar
from cake.ops import pipeline_ops
from cake.ops.machine import Wait
from cake.ops.rings import ring_facts
from cake.simulate.grid import coordinates, length
from cake.simulate.unit import UnitState

Step = Wait | None
"""What a unit yields: a wait, or None where another unit may go first."""


def run_block(u: UnitState, body: Block) -> Iterator[Step]:
    """Execute a block."""
    for s in body:
        u.place = s
        yield from _statement(u, s)


def _statement(u: UnitState, s: Stmt) -> Iterator[Step]:
    if isinstance(s, Assign):
        yield from _assign(u, s)
    elif isinstance(s, Do):
        yield from _perform(u, s.call)
        yield None
    elif isinstance(s, SetElement):
        _set_element(u, s)
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
        raise TypeError(f"{type(s).__name__} inside a role")


def _perform(u: UnitState, call: Call) -> Generator[Step, None, Any]:
    """A primitive that may block; the coroutine's result is its value."""
    result = u.call(call)
    if inspect.isgenerator(result):
        result = yield from result
    return result


def _value(u: UnitState, e: Expr) -> Generator[Step, None, Any]:
    if isinstance(e, Call):
        value = yield from _perform(u, e)
        return value
    value = u.eval(e)
    # A plain variable on the right is a copy; `lanes` (a call) is an alias on purpose.
    return value.copy() if isinstance(e, VarRef) and np.ndim(value) else value


def _assign(u: UnitState, s: Assign) -> Iterator[Step]:
    value = yield from _value(u, s.value)
    values = value if len(s.targets) > 1 else (value,)
    for name, declares, v in zip(s.targets, s.declares, values, strict=True):
        if declares or name not in u.variables:
            u.variables[name] = v
        else:
            _overwrite(u, name, v)


def _overwrite(u: UnitState, name: str, value: Any) -> None:
    """Assign to an existing variable: in place for arrays, by mask where threads are inactive."""
    old = u.eval(_reference(name))
    if np.ndim(old) == 2:
        keep = u.mask[:, None]
        if np.all(u.mask):
            old[...] = value
        else:
            old[...] = np.where(keep, value, old)
    elif np.all(u.mask):
        u.variables[name] = value
    else:
        dtype = np.asarray(old).dtype
        u.variables[name] = np.where(u.mask, value, old).astype(dtype)


def _reference(name: str) -> VarRef:
    from cake.diag import Span
    from cake.ir.dtypes import I32

    here = Span(file="<simulator>", line=1, col=1, end_line=1, end_col=1)
    return VarRef(name=name, type=Scalar(I32), loc=here)


def _set_element(u: UnitState, s: SetElement) -> None:
    array, index, value = u.eval(s.array), u.eval(s.index), u.eval(s.value)
    length = array.shape[1]
    if np.any(np.less(index, 0)) or np.any(np.greater_equal(index, length)):
        u.fail("CK502", f"register index outside {length} registers", length=length)
    rows = np.nonzero(u.mask)[0]
    columns = np.broadcast_to(np.asarray(index), (u.threads,))[rows]
    array[rows, columns] = np.broadcast_to(np.asarray(value), (u.threads,))[rows]


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
    while True:
        cond = u.eval(s.cond)
        if np.ndim(cond) == 0:
            if not bool(cond):
                return
            yield from run_block(u, s.body)
        else:
            active = u.mask & cond
            if not active.any():
                return
            yield from _masked(u, active, s.body)
        yield None


def _for(u: UnitState, s: For) -> Iterator[Step]:
    start, stop, step = u.eval(s.start), u.eval(s.stop), u.eval(s.step)
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
    for linear in range(u.cta.block, length(u.program, tiles, extents), u.cta.grid_size):
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
    yield from run_block(u, s.body)
    u.place = s
    if s.side == "fill":
        fill = ring_facts(u.program, s.pipeline).fill(s)
        yield from pipeline_ops.mean_commit(u, s.pipeline, stage, fill)
    else:
        pipeline_ops.mean_release(u, s.pipeline, stage)
    yield None
