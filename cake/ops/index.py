"""Where a thread stands: ``lane``, ``warp``, ``thread``, its CTA, the grid. One table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.dtypes import I32
from cake.ir.nodes import Call
from cake.ir.types import WARP, WARPGROUP, Scalar
from cake.ops.base import Cost, Primitive, TypingContext, no_effects, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


@dataclass(frozen=True, slots=True, kw_only=True)
class _Index:
    """``varies`` tells from the unit's threads whether they see different values.

    ``c`` is the C expression; it may call ``device``, a function given as (name, code).
    """

    name: str
    c: str
    device: tuple[str, str] | None = None
    varies: Callable[[int], bool]
    value: Callable[[Unit], Any]
    doc: str


def _threads(unit: Unit) -> Any:
    return np.arange(unit.threads, dtype=np.int32)


_SMID = (
    "sm_index",
    """__device__ __forceinline__ int sm_index() {
  int sm;
  asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
  return sm;
}""",
)
_TABLE = (
    _Index(
        name="lane",
        c="lane",
        varies=lambda threads: True,
        value=lambda unit: _threads(unit) % WARP,
        doc="The thread's lane in its warp, 0 to 31, as i32.",
    ),
    _Index(
        name="warp",
        c="warp_in_unit",
        varies=lambda threads: threads == WARPGROUP,
        value=lambda unit: _threads(unit) // WARP if unit.threads > WARP else np.int32(0),
        doc="The thread's warp in its unit as i32: 0 to 3 in a warpgroup, 0 in a warp.",
    ),
    _Index(
        name="thread",
        c="unit_thread",
        varies=lambda threads: True,
        value=_threads,
        doc="The thread's index in its unit as i32: 0 to 127 in a warpgroup, 0 to 31 in a warp.",
    ),
    _Index(
        name="cta_rank",
        c="cta_rank",
        varies=lambda threads: False,
        value=lambda unit: np.int32(unit.block_rank),
        doc="The rank of the CTA in its cluster as i32; 0 without a cluster.",
    ),
    _Index(
        name="block_index",
        c="(int)blockIdx.x",
        varies=lambda threads: False,
        value=lambda unit: np.int32(unit.block),
        doc="The number of the CTA in the grid as i32, from 0 on. With `grid_size` it tells the"
        " last of the CTAs that count themselves from the others.",
    ),
    _Index(
        name="grid_size",
        c="(int)gridDim.x",
        varies=lambda threads: False,
        value=lambda unit: np.int32(unit.grid_size),
        doc="The number of CTAs launched, as i32. A persistent grid has at most as many as are"
        " resident at once.",
    ),
    _Index(
        name="smid",
        c="sm_index()",
        device=_SMID,
        varies=lambda threads: False,
        value=lambda unit: np.int32(unit.block),
        doc="The number of the multiprocessor that runs the CTA, as i32: for measurements and for"
        " data kept per multiprocessor. In the simulator every CTA has one of its own.",
    ),
)


def _define(entry: _Index) -> None:
    def typing(t: TypingContext, call: Call) -> Scalar:
        return Scalar(I32, entry.varies(t.unit_threads))

    def meaning(unit: Unit, call: Call) -> Any:
        return np.asarray(entry.value(unit))

    def emit(cg: Emitter, call: Call, dest: str | None) -> str:
        if entry.device is not None:
            cg.helper(*entry.device)
        return entry.c

    register(
        Primitive(
            name=entry.name,
            params=(),
            doc=entry.doc,
            source="PTX ISA, Special Registers: %laneid, %tid, %cluster_ctarank, %ctaid, %smid",
            typing=typing,
            effects=no_effects,
            meaning=meaning,
            cost=lambda call, threads: Cost(),
            emit={"": emit},
        )
    )


for _entry in _TABLE:
    _define(_entry)
