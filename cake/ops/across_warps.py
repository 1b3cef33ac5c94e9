"""Column vectors of a warpgroup: its four warps meet through a scratch buffer in shared memory.

A column of a warpgroup's fragment lies in all four warps, whose registers no shuffle reaches. Each
warp writes its row of the scratch buffer (4, N); after a barrier every thread reads the four rows
of its columns and folds them in the order of the warps. A barrier in front keeps the rows of an
earlier fold until everybody has read them.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import numpy as np

from cake.ir.dtypes import DType
from cake.ir.fragments import col_coordinates
from cake.ir.nodes import Call, Expr, View
from cake.ir.types import WARP, ColVector, SmemView
from cake.ops import check, vector_load
from cake.ops.base import Access, Effects, Param, SyncEffect, TypingContext, lookup, operand
from cake.ops.c_types import C_TYPE
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.memory_access import Form, load_words, store_words
from cake.ops.unit_sync import emit_unit_sync, mean_unit_sync

WARPS = 4


def scratch_param(name: str) -> Param:
    """A scratch buffer: given by warpgroups, left out by warps."""
    return Param(name, "place", None, keyword_only=True)


def typed_scratch(t: TypingContext, call: Call, name: str, dtype: DType, cols: int) -> None:
    """A (4, cols) view for a warpgroup; a warp holds whole columns and takes none."""
    e = operand(call, name)
    if t.unit_threads == WARP:
        if e is not None:
            t.fail(f"a warp holds whole columns and needs no {name}", e, helps=("leave it out",))
        return
    if e is None:
        t.fail(
            f"a column of a warpgroup lies in four warps, which meet in {name}",
            helps=(f"declare S = smem({dtype}, ({WARPS}, {cols})) and give {name}=S",),
        )
    _, tile = check.smem(t, e, name, rank=2)
    assert isinstance(e, View)
    if tile.transposed or tile.dtype != dtype or tile.shape != (WARPS, cols):
        t.fail(f"{name} must be smem({dtype}, {WARPS}x{cols}), got {tile}", e)
    vector_load.uniform_offsets(t, e)
    vector_load.typed_pairs(t, e, name)


def effects(call: Call, *names: str) -> Effects:
    """Writes and reads of the scratch buffers that are given, and the barriers between."""
    primitive = lookup(call.op)
    assert primitive is not None
    used = [primitive.param_index(n) for n in names if operand(call, n) is not None]
    if not used:
        return ()
    return (
        SyncEffect("barrier", "unit"),
        *(Access("write", i, "smem") for i in used),
        SyncEffect("barrier", "unit"),
        *(Access("read", i, "smem") for i in used),
    )


# -- meaning ---------------------------------------------------------------------------------------


def gathered(unit: Unit, parts: Sequence[tuple[Expr, Any]]) -> Generator[Wait, None, list[Any]]:
    """For each (scratch, column vector of each warp) what the four warps hold of its columns.

    The generator's value has an array (warps, threads, registers) for each part.
    """
    yield from mean_unit_sync(unit)
    for scratch, values in parts:
        _write(unit, scratch, values)
    yield from mean_unit_sync(unit)
    return [_read(unit, scratch) for scratch, _ in parts]


def _columns(scratch: Expr) -> Any:
    assert isinstance(scratch.type, SmemView)
    return col_coordinates(ColVector(scratch.type.dtype, scratch.type.shape[1]), WARPS)


def _write(unit: Unit, scratch: Expr, values: Any) -> None:
    thread = np.arange(unit.threads)[:, None]
    column = _columns(scratch)
    warp = np.broadcast_to(thread // WARP, column.shape)
    unit.smem_write(scratch, values, [warp, column], mask=thread % WARP < 4)


def _read(unit: Unit, scratch: Expr) -> Any:
    column = _columns(scratch)
    return np.stack(
        [unit.smem_read(scratch, [np.full_like(column, w), column]) for w in range(WARPS)]
    )


# -- emission --------------------------------------------------------------------------------------


def emit_write(cg: Emitter, parts: Sequence[tuple[Expr, str]]) -> None:
    """Every warp writes its column vectors (scratch, C array); then all may read them."""
    emit_unit_sync(cg)
    with cg.block("if (lane < 4)"):
        for scratch, array in parts:
            dtype, cols = _shape(scratch)
            store = store_words(cg, Form("shared"), dtype, 2)
            with cg.unrolled(cols // 8):
                at = cg.smem_address(scratch, ["warp_in_unit", "i * 8 + lane * 2"])
                cg.line(f"{store}({at}, {array} + 2 * i);")
    emit_unit_sync(cg)


def emit_read(cg: Emitter, scratch: Expr) -> str:
    """Columns 2i and 2i + 1 of the four warps in a fresh array: warp w's at 2w and 2w + 1."""
    dtype, _ = _shape(scratch)
    load = load_words(cg, Form("shared"), dtype, 2)
    part = cg.fresh("part")
    cg.line(f"{C_TYPE[dtype]} {part}[{2 * WARPS}];")
    with cg.unrolled(WARPS, "w"):
        at = cg.smem_address(scratch, ["w", "i * 8 + lane % 4 * 2"])
        cg.line(f"{load}({part} + 2 * w, {at});")
    return part


def _shape(scratch: Expr) -> tuple[DType, int]:
    assert isinstance(scratch.type, SmemView)
    return scratch.type.dtype, scratch.type.shape[1]


def scratch_bytes(cols: int, threads: int) -> int:
    """Shared-memory traffic of one vector: four rows written, and read by four warps."""
    return 0 if threads == WARP else 4 * cols * (WARPS + WARPS * WARPS)
