"""``scan_rows`` and ``scan_cols``: prefix sums along the rows or columns of a fragment.

The lanes that hold a row (column) own neighbouring places of each *block* of 8: two columns a lane
along a row, one row a lane down a column. A block is scanned over its lanes (Hillis and Steele,
1986), and blocks follow one another with a carry. This fixes how f32 rounds.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from cake.ir.nodes import Call, Expr
from cake.ir.types import WARP, Fragment
from cake.ops import across_warps, fills, folds
from cake.ops.acc_parts import COLUMNS, ROWS, Axis, acc_fragment, registers_of
from cake.ops.base import (
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    no_effects,
    operand,
    register,
    static,
)
from cake.ops.c_types import C_TYPE
from cake.ops.emit import Emitter
from cake.ops.machine import Unit, Wait
from cake.ops.warp_values import FULL

BLOCK = 8


@dataclass(frozen=True, slots=True)
class _Scan:
    """What a call asks for."""

    source: Expr
    t: Fragment
    op: str
    exclusive: bool

    @classmethod
    def of(cls, call: Call) -> _Scan:
        x = operand(call, "fragment")
        assert x is not None
        assert isinstance(x.type, Fragment)
        return cls(x, x.type, static(call, "op"), static(call, "exclusive"))

    def combine(self, a: Any, b: Any) -> Any:
        return folds.combine(self.op, a, b)

    def c_combine(self, a: str, b: str) -> str:
        return folds.c_combine(self.op, self.t.dtype, a, b)


def _run(axis: Axis) -> int:
    """Neighbours of a block that one lane holds."""
    return BLOCK * axis.steps[0] // (2 * axis.steps[-1])


def _typing(axis: Axis, t: TypingContext, call: Call) -> Typed:
    fragment = acc_fragment(t, call, "fragment")
    folds.typed_op(t, call)
    fills.flag(t, call, "exclusive")
    if axis is COLUMNS:
        across_warps.typed_scratch(t, call, "scratch", fragment.dtype, fragment.shape[1])
    return Typed(fragment, call.args)


# -- meaning ---------------------------------------------------------------------------------------


def _scanned(axis: Axis, unit: Unit, scan: _Scan) -> tuple[Any, Any]:
    """The scan within each warp, and the totals (threads, kept) at its end."""
    registers = registers_of(axis, scan.t)
    x = np.asarray(unit.eval(scan.source))
    out = np.empty_like(x)
    none = folds.identity(scan.op, scan.t.dtype)
    carry = np.full((unit.threads, len(registers)), none)
    run = _run(axis)
    for first in range(0, registers.shape[1], run):
        places = [registers[:, first + k] for k in range(run)]
        own = x[:, places[0]]
        for place in places[1:]:
            own = scan.combine(own, x[:, place])
        before, total = _over_lanes(axis, scan, own, none)
        at = scan.combine(carry, before)
        for place in places:
            after = scan.combine(at, x[:, place])
            out[:, place] = at if scan.exclusive else after
            at = after
        carry = scan.combine(carry, total)
    return out, carry


def _over_lanes(axis: Axis, scan: _Scan, x: Any, none: Any) -> tuple[Any, Any]:
    """What the lanes before hold together, and the total of a row's (column's) lanes."""
    lane = np.arange(len(x))
    mask = sum(axis.steps)
    for distance in axis.steps:
        reached = ((lane & mask) >= distance)[:, None]
        x = np.where(reached, scan.combine(x, x[lane - distance]), x)
    first = ((lane & mask) == 0)[:, None]
    return np.where(first, none, x[lane - axis.steps[0]]), x[lane | mask]


def _rows_meaning(unit: Unit, call: Call) -> Any:
    return _scanned(ROWS, unit, _Scan.of(call))[0]


def _cols_meaning(unit: Unit, call: Call) -> Generator[Wait, None, Any]:
    scan, scratch = _Scan.of(call), operand(call, "scratch")
    out, total = _scanned(COLUMNS, unit, scan)
    if scratch is None:
        return out
    (warps,) = yield from across_warps.gathered(unit, [(scratch, total)])
    before = np.full_like(total, folds.identity(scan.op, scan.t.dtype))
    warp = (np.arange(unit.threads) // WARP)[:, None]
    for w in range(across_warps.WARPS - 1):
        before = np.where(warp > w, scan.combine(before, warps[w]), before)
    registers = registers_of(COLUMNS, scan.t)
    out[:, registers] = scan.combine(before[:, :, None], out[:, registers])
    return out


# -- emission --------------------------------------------------------------------------------------


def _emit(axis: Axis, cg: Emitter, call: Call, dest: str | None) -> str:
    scan = _Scan.of(call)
    t, run = scan.t, _run(axis)
    scratch = operand(call, "scratch") if axis is COLUMNS else None
    name = dest or cg.fresh("scan")
    if dest is None:
        cg.declare(t, name)
    c = C_TYPE[t.dtype]
    kept, block, carry, totals = (cg.fresh(n) for n in (axis.short[0], "b", "carry", "totals"))
    if scratch is not None:
        cg.line(f"{c} {totals}[{axis.kept(t)}];")
    function = cg.helper(*_over_lanes_function(axis, scan))
    places = [axis.register(t, kept, f"({block} * {run} + {k})") for k in range(run)]
    values = [cg.element(scan.source, place, t) for place in places]
    to = [f"{name}[{place}]" for place in places]
    with cg.unrolled(axis.kept(t), kept):
        cg.line(f"{c} {carry} = {folds.c_identity(scan.op, t.dtype)};")
        with cg.unrolled(axis.walked(t) // run, block):
            _emit_block(cg, scan, function, carry, values, to)
        if scratch is not None:
            cg.line(f"{totals}[{kept}] = {carry};")
    if scratch is not None:
        _emit_across(cg, scan, scratch, name, totals)
    return name


def _emit_block(
    cg: Emitter, scan: _Scan, function: str, carry: str, values: list[str], to: list[str]
) -> None:
    """One block: a lane's ``values`` are scanned into ``to``, and ``carry`` goes on."""
    c = C_TYPE[scan.t.dtype]
    own, before, total, at = (cg.fresh(n) for n in ("own", "before", "total", "at"))
    x = [cg.fresh("x") for _ in values]
    for one, value in zip(x, values, strict=True):
        cg.line(f"const {c} {one} = {value};")
    cg.line(f"{c} {own} = {x[0]}, {before}, {total};")
    for one in x[1:]:
        cg.line(f"{own} = {scan.c_combine(own, one)};")
    cg.line(f"{function}({own}, lane, {before}, {total});")
    cg.line(f"{c} {at} = {scan.c_combine(carry, before)};")
    for place, one in zip(to, x, strict=True):
        if scan.exclusive:
            cg.line(f"{place} = {at};")
        cg.line(f"{at} = {scan.c_combine(at, one)};")
        if not scan.exclusive:
            cg.line(f"{place} = {at};")
    cg.line(f"{carry} = {scan.c_combine(carry, total)};")


def _over_lanes_function(axis: Axis, scan: _Scan) -> tuple[str, str]:
    """A function that scans a block over its lanes: (name, code)."""
    dtype = scan.t.dtype
    c, mask = C_TYPE[dtype], sum(axis.steps)
    name = f"scan_{axis.group}_{scan.op}_{c}"
    code = f"""\
__device__ __forceinline__ void {name}({c} x, int lane, {c}& before, {c}& total) {{
#pragma unroll
  for (int d = {axis.steps[0]}; d <= {axis.steps[-1]}; d *= 2) {{
    const {c} lower = __shfl_up_sync({FULL}, x, d);
    x = (lane & {mask}) >= d ? {scan.c_combine("x", "lower")} : x;
  }}
  const {c} up = __shfl_up_sync({FULL}, x, {axis.steps[0]});
  before = (lane & {mask}) == 0 ? {folds.c_identity(scan.op, dtype)} : up;
  total = __shfl_sync({FULL}, x, lane | {mask});
}}"""
    return name, code


def _emit_across(cg: Emitter, scan: _Scan, scratch: Expr, name: str, totals: str) -> None:
    """Put what the lower warps hold of a column in front of the warp's own scan."""
    t = scan.t
    across_warps.emit_write(cg, [(scratch, totals)])
    before, row = cg.fresh("before"), cg.fresh("r")
    with cg.unrolled(t.shape[1] // 8):
        part = across_warps.emit_read(cg, scratch)
        for k in range(2):
            with cg.block(""):
                cg.line(f"{C_TYPE[t.dtype]} {before} = {folds.c_identity(scan.op, t.dtype)};")
                for w in range(across_warps.WARPS - 1):
                    more = scan.c_combine(before, f"{part}[{2 * w + k}]")
                    cg.line(f"{before} = warp_in_unit > {w} ? {more} : {before};")
                with cg.unrolled(COLUMNS.walked(t), row):
                    place = f"{name}[{COLUMNS.register(t, f'(2 * i + {k})', row)}]"
                    cg.line(f"{place} = {scan.c_combine(before, place)};")


# -- cost and registration -------------------------------------------------------------------------


def _cost(axis: Axis, call: Call, threads: int) -> Cost:
    t = _Scan.of(call).t
    blocks = t.registers // _run(axis)
    shuffles = blocks * (len(axis.steps) + 2) * threads
    n = (blocks * (2 * len(axis.steps) + 3) + 2 * t.registers) * threads
    work = Cost(alu=n, issue=(n + shuffles) // WARP, smem=4 * shuffles)
    if axis is COLUMNS:
        work += Cost(smem=across_warps.scratch_bytes(t.shape[1], threads))
    return work


def _cols_effects(call: Call) -> Effects:
    return across_warps.effects(call, "scratch")


_ACROSS = """ In a warpgroup
each warp scans its rows, and the totals of the warps below are put in front through ``scratch``, a
(4, N) view of shared memory of the fragment's element type, between two barriers of the unit; a
warp takes no scratch."""

for _axis, _along, _more in ((ROWS, "columns", ""), (COLUMNS, "rows", _ACROSS)):
    _rows = _axis is ROWS
    register(
        Primitive(
            name=f"scan_{_axis.short}s",
            params=(
                Param("fragment"),
                Param("op", "static", "sum"),
                Param("exclusive", "static", False, keyword_only=True),
                *([] if _rows else [across_warps.scratch_param("scratch")]),
            ),
            doc=f"""The prefix folds of each {_axis.keeps} of an acc ``fragment``, as a fragment.

{_along.capitalize()} follow one another in ascending order. ``op`` is "sum" (default), "min" or
"max", over f32, i32 or u32. ``exclusive=True`` leaves out the element itself: the first of each
{_axis.keeps} is then 0 (the largest, smallest value for min,
max). Blocks of 8 {_along} are scanned over their lanes and follow one another with a carry, so
f32 rounds alike in simulator and GPU; integer sums wrap.{_more}""",
            source="PTX ISA, shfl.sync.up; Hillis and Steele, Data parallel algorithms, 1986",
            typing=partial(_typing, _axis),
            effects=no_effects if _rows else _cols_effects,
            meaning=_rows_meaning if _rows else _cols_meaning,
            cost=partial(_cost, _axis),
            emit={"": partial(_emit, _axis)},
            convergent=True,
        )
    )
