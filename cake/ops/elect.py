"""``elect``: one lane of each warp."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL
from cake.ir.nodes import Call
from cake.ir.types import WARP, Scalar
from cake.ops.base import Cost, Primitive, TypingContext, no_effects, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _typing(t: TypingContext, call: Call) -> Scalar:
    return Scalar(BOOL, True)


def _meaning(unit: Unit, call: Call) -> Any:
    return np.arange(unit.threads) % WARP == 0


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    return "(lane == 0)"


def _cost(call: Call, threads: int) -> Cost:
    return Cost(alu=threads, issue=threads // WARP)


register(
    Primitive(
        name="elect",
        params=(),
        doc="""True in lane 0 of each warp, false in the others.

Always the same lane, so what it writes and later reads back stays in one thread.""",
        source="PTX ISA, Special Registers: %laneid",
        typing=_typing,
        effects=no_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
