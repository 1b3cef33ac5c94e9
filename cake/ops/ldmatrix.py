"""``ldmatrix(view)``: a shared tile as an operand fragment of mma.sync or wgmma."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.fragments import coordinates
from cake.ir.nodes import Call, View
from cake.ir.types import WARP, Fragment, SmemView
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    TypingContext,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.matrix_access import (
    acc_addresses,
    check_view,
    matrix_blocks,
    typed_view,
)
from cake.ops.tiles import logical_shape


def _typing(t: TypingContext, call: Call) -> Fragment:
    view, tile = typed_view(t, call.args[0])
    check.one_of(t, call.args[1], "operand", ("a", "b"))
    rows, cols = logical_shape(tile)
    if static(call, "operand") == "b":
        if rows % 16 or cols % 8:
            t.fail(
                f"a B operand (K, N) has a multiple of 16 rows and of 8 columns, got {rows}x{cols}",
                view,
                helps=("for a tile stored N x K write W[s].T",),
                facts={"rows": rows, "cols": cols},
            )
        return Fragment(tile.dtype, (rows, cols), "b", 1)
    warps = t.unit_threads // WARP
    if rows % (16 * warps) or cols % 16:
        t.fail(
            f"an A operand of this unit has a multiple of {16 * warps} rows and of 16 columns,"
            f" got {rows}x{cols}",
            view,
            facts={"rows": rows, "cols": cols, "row_multiple": 16 * warps},
        )
    return Fragment(tile.dtype, (rows, cols), "acc", warps)


def _effects(call: Call) -> Effects:
    return (Access("read", 0, "smem"),)


def _meaning(unit: Unit, call: Call) -> Any:
    view, t = call.args[0], call.type
    assert isinstance(view, View)
    assert isinstance(t, Fragment)
    check_view(unit, call, view)
    rows, cols = coordinates(t)
    # Each warp of a warpgroup holds the whole B operand.
    copies = unit.threads // len(rows)
    return unit.smem_read(view, [np.tile(rows, (copies, 1)), np.tile(cols, (copies, 1))])


def _cost(call: Call, threads: int) -> Cost:
    t = call.type
    assert isinstance(t, Fragment)
    warps = threads // WARP
    size = t.registers * WARP * 2
    return Cost(issue=2 * warps * max(1, t.registers // 8), smem=size * warps)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    view, t = call.args[0], call.type
    assert isinstance(view, View)
    assert isinstance(t, Fragment)
    name = dest or cg.fresh("matrix")
    if dest is None:
        cg.declare(t, name)
    if t.layout == "acc":
        _emit_a(cg, view, t, name)
    else:
        _emit_b(cg, view, t, name)
    return name


def _emit_a(cg: Emitter, view: View, t: Fragment, name: str) -> None:
    assert isinstance(view.type, SmemView)
    load = helper(cg, 4, trans=view.type.transposed)
    pairs, _ = matrix_blocks(t.shape[1])
    with cg.unrolled(t.shape[0] // (16 * t.warps)), cg.unrolled(pairs, "j"):
        address = acc_addresses(cg, view, t, "j * 16", 4)
        cg.line(f"{load}({name} + (i * {pairs} + j) * 4, {address});")


def _emit_b(cg: Emitter, view: View, t: Fragment, name: str) -> None:
    """Four matrices cover K 16 and N 16; the last 8 columns of N take two."""
    assert isinstance(view.type, SmemView)
    # The registers hold pairs along K: rows of the matrices as they are if K lies along memory.
    trans = not view.type.transposed
    steps = t.shape[1] // 8
    pairs, single = matrix_blocks(t.shape[1])
    with cg.unrolled(t.shape[0] // 16):
        if pairs:
            load = helper(cg, 4, trans=trans)
            with cg.unrolled(pairs, "j"):
                address = _b_address(cg, view, "j * 16", four=True)
                cg.line(f"{load}({name} + (i * {steps} + j * 2) * 2, {address});")
        if single:
            load = helper(cg, 2, trans=trans)
            address = _b_address(cg, view, str(pairs * 16), four=False)
            cg.line(f"{load}({name} + (i * {steps} + {pairs * 2}) * 2, {address});")


def _b_address(cg: Emitter, view: View, column: str, *, four: bool) -> str:
    """Matrices go along K first, then to the next 8 columns of N."""
    assert isinstance(view.type, SmemView)
    next_n = " + lane / 16 * 8" if four else ""
    if view.type.transposed:
        return cg.smem_address(view, ["i * 16 + lane / 8 % 2 * 8", f"{column} + lane % 8{next_n}"])
    return cg.smem_address(view, ["i * 16 + lane % 16", f"{column}{next_n}"])


def helper(cg: Emitter, matrices: int, *, trans: bool) -> str:
    """Helper that loads two or four matrices into consecutive registers."""
    name = f"ldmatrix_x{matrices}{'_trans' if trans else ''}"
    outputs = ", ".join(f'"=r"(to[{i}])' for i in range(matrices))
    names = ", ".join(f"%{i}" for i in range(matrices))
    code = f"""\
__device__ __forceinline__ void {name}(unsigned* to, unsigned from) {{
  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x{matrices}{".trans" if trans else ""}.shared.b16 "
      "{{{names}}}, [%{matrices}];"
      : {outputs} : "r"(from));
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="ldmatrix",
        params=(
            Param("view", "place"),
            Param("operand", "static", "a", keyword_only=True),
        ),
        doc="Load a tile of 16-bit elements from shared memory into a fragment. operand='a': an A"
        " operand of mma.sync or wgmma, in the acc layout; rows a multiple of 16 for each warp of"
        " the unit, columns of 16. operand='b': a B operand of mma.sync with logical shape (K, N),"
        " from `W[s].T` stored N x K or from a tile stored K x N; K a multiple of 16, N of 8; every"
        " warp of a warpgroup gets the whole of it. A transposed view is loaded with .trans.",
        source="PTX ISA 9.0, ldmatrix",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
        requires="ldmatrix",
        convergent=True,
    )
)
