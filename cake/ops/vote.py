"""``any_sync``, ``all_sync``, ``ballot``: a warp's answer to a question. One table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, U32, DType
from cake.ir.nodes import Call
from cake.ir.types import WARP
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
from cake.ops.warp_values import FULL, by_warp, per_warp, spread


def _typing(dtype: DType, t: TypingContext, call: Call) -> Typed:
    predicate = check.boolean(t, operand(call, "predicate"), "predicate")
    return Typed(per_warp(t, dtype), (predicate,))


def _meaning(fold: Callable[[Any], Any], unit: Unit, call: Call) -> Any:
    predicate = operand(call, "predicate")
    assert predicate is not None
    return spread(unit, fold(by_warp(unit, unit.eval(predicate))), call)


def _bits(lanes: Any) -> Any:
    """Bit i is lane i."""
    return (lanes.astype(np.uint64) << np.arange(WARP, dtype=np.uint64)).sum(1).astype(np.uint32)


def _emit(pattern: str, cg: Emitter, call: Call, dest: str | None) -> str:
    predicate = operand(call, "predicate")
    assert predicate is not None
    return pattern.format(mask=FULL, predicate=cg.scalar(predicate))


def _cost(call: Call, threads: int) -> Cost:
    return Cost(alu=threads, issue=threads // WARP)


for _name, _dtype, _fold, _pattern, _doc in (
    (
        "any_sync",
        BOOL,
        partial(np.any, axis=1),
        "(__any_sync({mask}, {predicate}) != 0)",
        "Whether the predicate holds in any lane of the warp.",
    ),
    (
        "all_sync",
        BOOL,
        partial(np.all, axis=1),
        "(__all_sync({mask}, {predicate}) != 0)",
        "Whether the predicate holds in all lanes of the warp.",
    ),
    (
        "ballot",
        U32,
        _bits,
        "__ballot_sync({mask}, {predicate})",
        "The lanes of the warp in which the predicate holds, as u32: bit i is lane i.",
    ),
):
    register(
        Primitive(
            name=_name,
            params=(Param("predicate"),),
            doc=f"{_doc} Uniform in a warp; each warp of a warpgroup has its own.",
            source="PTX ISA, vote.sync",
            typing=partial(_typing, _dtype),
            effects=no_effects,
            meaning=partial(_meaning, _fold),
            cost=_cost,
            emit={"": partial(_emit, _pattern)},
            convergent=True,
        )
    )
