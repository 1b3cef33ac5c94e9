"""``row_index`` and ``col_index``: which row or column of a tile each register stands for."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import I32
from cake.ir.fragments import col_coordinates, row_coordinates
from cake.ir.nodes import Call
from cake.ir.types import WARP, ColVector, RowVector, registers
from cake.ops import check
from cake.ops.base import Cost, Param, Primitive, TypingContext, no_effects, operand, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit


def _type_rows(t: TypingContext, call: Call) -> RowVector:
    warps = t.unit_threads // WARP
    rows = check.static_int(t, operand(call, "count"), "count", 16 * warps, 1 << 16)
    if rows % (16 * warps):
        t.fail(f"count must be a multiple of {16 * warps}, got {rows}")
    return RowVector(I32, rows, warps)


def _type_cols(t: TypingContext, call: Call) -> ColVector:
    cols = check.static_int(t, operand(call, "count"), "count", 8, 1 << 16)
    if cols % 8:
        t.fail(f"count must be a multiple of 8, got {cols}")
    return ColVector(I32, cols)


def _mean_rows(unit: Unit, call: Call) -> Any:
    assert isinstance(call.type, RowVector)
    return row_coordinates(call.type).astype(np.int32)


def _mean_cols(unit: Unit, call: Call) -> Any:
    assert isinstance(call.type, ColVector)
    return col_coordinates(call.type, unit.threads // WARP).astype(np.int32)


def _destination(cg: Emitter, call: Call, dest: str | None) -> str:
    if dest is None:
        dest = cg.fresh("index")
        cg.declare(call.type, dest)
    return dest


def _emit_rows(cg: Emitter, call: Call, dest: str | None) -> str:
    assert isinstance(call.type, RowVector)
    dest = _destination(cg, call, dest)
    per_warp = call.type.rows // call.type.warps
    with cg.unrolled(registers(call.type)):
        cg.line(
            f"{dest}[i] = warp_in_unit * {per_warp} + (i >> 1) * 16 + (i & 1) * 8 + (lane >> 2);"
        )
    return dest


def _emit_cols(cg: Emitter, call: Call, dest: str | None) -> str:
    dest = _destination(cg, call, dest)
    with cg.unrolled(registers(call.type)):
        cg.line(f"{dest}[i] = (i >> 1) * 8 + (lane & 3) * 2 + (i & 1);")
    return dest


def _cost(call: Call, threads: int) -> Cost:
    n = registers(call.type)
    return Cost(alu=n * threads, issue=n * threads // WARP)


for _name, _what, _typing, _meaning, _emit in (
    ("row_index", "row", _type_rows, _mean_rows, _emit_rows),
    ("col_index", "column", _type_cols, _mean_cols, _emit_cols),
):
    register(
        Primitive(
            name=_name,
            params=(Param("count", "static"),),
            doc=f"""The {_what} number, 0 to count - 1, as an i32 {_what} vector.

Compared with a bound it masks the tail of a fragment:
``select(col_index(128) + k < K, d, inf)``. ``count`` is a multiple of the unit's rows (16 or 64)
or of 8 columns.""",
            source="PTX ISA, Register Fragments for wgmma.m64nNk16",
            typing=_typing,
            effects=no_effects,
            meaning=_meaning,
            cost=_cost,
            emit={"": _emit},
        )
    )
