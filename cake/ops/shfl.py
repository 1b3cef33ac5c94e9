"""``shfl``, ``shfl_xor``, ``shfl_up``, ``shfl_down``: another lane's value. One table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import I32
from cake.ir.nodes import Call, Expr
from cake.ir.types import WARP, Scalar
from cake.ops import check
from cake.ops.base import (
    Cost,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.warp_values import DTYPES, FULL, by_warp, per_warp, typed_scalar


@dataclass(frozen=True, slots=True, kw_only=True)
class _Shuffle:
    """``source`` gives the lane read, from the own lane and the operand (arrays)."""

    name: str
    operand: str
    intrinsic: str
    source: Callable[[Any, Any], Any]
    doc: str


_TABLE = (
    _Shuffle(
        name="shfl",
        operand="source",
        intrinsic="__shfl_sync",
        source=lambda lane, x: np.broadcast_to(x % WARP, lane.shape),
        doc="The value of x in lane `source` modulo 32 of the same warp; uniform if source is.",
    ),
    _Shuffle(
        name="shfl_xor",
        operand="mask",
        intrinsic="__shfl_xor_sync",
        source=lambda lane, x: lane ^ x % WARP,
        doc="The value of x in the lane whose number is the own one XOR mask.",
    ),
    _Shuffle(
        name="shfl_up",
        operand="delta",
        intrinsic="__shfl_up_sync",
        source=lambda lane, x: np.where(lane >= x % WARP, lane - x % WARP, lane),
        doc="The value of x delta lanes lower; the lowest delta lanes keep their own.",
    ),
    _Shuffle(
        name="shfl_down",
        operand="delta",
        intrinsic="__shfl_down_sync",
        source=lambda lane, x: np.where(lane + x % WARP < WARP, lane + x % WARP, lane),
        doc="The value of x delta lanes higher; the highest delta lanes keep their own.",
    ),
)


def _typing(entry: _Shuffle, t: TypingContext, call: Call) -> Typed:
    x = typed_scalar(t, call, "x", DTYPES)
    where = check.integer(t, operand(call, entry.operand), entry.operand)
    if where.type != Scalar(I32, True) and where.type != Scalar(I32, False):
        t.fail(f"{entry.operand} must be i32, got {where.type}", where)
    check_lane(t, where, entry.operand)
    assert isinstance(x.type, Scalar)
    assert isinstance(where.type, Scalar)
    one_source = entry.name == "shfl" and not where.type.varying
    result = per_warp(t, x.type.dtype) if one_source else Scalar(x.type.dtype, True)
    return Typed(result, (x, where))


def check_lane(t: TypingContext, e: Expr, what: str) -> None:
    """A compile-time lane or distance is in [0, 32)."""
    value = getattr(e, "value", None)
    if value is not None and not 0 <= value < WARP:
        t.fail(f"{what} must be in [0, {WARP}), got {value}", e, facts={"value": value})


def _meaning(entry: _Shuffle, unit: Unit, call: Call) -> Any:
    x, where = (unit.eval(e) for e in call.args if e is not None)
    lanes = np.broadcast_to(np.arange(WARP), (unit.threads // WARP, WARP))
    source = entry.source(lanes, by_warp(unit, where).astype(np.int64))
    result = np.take_along_axis(by_warp(unit, x), source, axis=1).reshape(-1)
    assert isinstance(call.type, Scalar)
    return result if call.type.varying else result[0]


def _emit(entry: _Shuffle, cg: Emitter, call: Call, dest: str | None) -> str:
    x, where = (cg.scalar(e) for e in call.args if e is not None)
    return f"{entry.intrinsic}({FULL}, {x}, {where})"


def _cost(call: Call, threads: int) -> Cost:
    return Cost(issue=threads // WARP, smem=4 * threads)


for _entry in _TABLE:
    register(
        Primitive(
            name=_entry.name,
            params=(Param("x"), Param(_entry.operand)),
            doc=f"{_entry.doc} x is f32, i32 or u32, {_entry.operand} i32.",
            source="PTX ISA, shfl.sync",
            typing=partial(_typing, _entry),
            effects=no_effects,
            meaning=partial(_meaning, _entry),
            cost=_cost,
            emit={"": partial(_emit, _entry)},
            convergent=True,
        )
    )
