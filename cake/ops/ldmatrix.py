"""``ldmatrix(view)``: a shared tile as an operand fragment of mma.sync or wgmma."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, E4M3, E5M2, F16, F32, I8, TF32, U8, U16, DType
from cake.ir.fragments import coordinates
from cake.ir.nodes import Call, View
from cake.ir.types import WARP, Fragment, FragmentLayout, SmemView
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
    per_row,
    typed_view,
)
from cake.ops.memory_access import word
from cake.ops.tiles import logical_shape

ELEMENTS = (BF16, F16, U16, TF32, F32, I8, U8, E4M3, E5M2)


def _typing(t: TypingContext, call: Call) -> Fragment:
    view, tile = typed_view(t, call.args[0], ELEMENTS)
    check.one_of(t, call.args[1], "operand", ("a", "b"))
    side = static(call, "operand")
    if tile.dtype.bits != 16 and tile.transposed != (side == "b"):
        stored = "(M, K)" if side == "a" else "(N, K) and used as W[s].T"
        t.fail(
            f"{side.upper()} of {tile.dtype} must be stored as {stored}",
            view,
            helps=("only 16-bit elements can be transposed on the way",),
        )
    rows, cols = logical_shape(tile)
    warps = t.unit_threads // WARP
    deep = 2 * per_row(tile.dtype)
    units = (deep, 8) if side == "b" else (16 * warps, deep)
    if rows % units[0] or cols % units[1]:
        what = "a B operand (K, N)" if side == "b" else "an A operand of this unit"
        t.fail(
            f"{what} of {tile.dtype} has a multiple of {units[0]} rows and of {units[1]} columns,"
            f" got {rows}x{cols}",
            view,
            helps=("for a tile stored N x K write W[s].T",) if side == "b" else (),
            facts={"rows": rows, "cols": cols, "row_multiple": units[0]},
        )
    if side == "b":
        layout: FragmentLayout = "b" if tile.dtype.bits == 16 else "b_ldmatrix"
        return Fragment(tile.dtype, (rows, cols), layout, 1)
    return Fragment(tile.dtype, (rows, cols), "acc" if deep == 16 else "a_ldmatrix", warps)


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
    size = t.registers * WARP * t.dtype.bytes
    return Cost(issue=2 * warps * max(1, size // (16 * WARP)), smem=size * warps)


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    view, t = call.args[0], call.type
    assert isinstance(view, View)
    assert isinstance(t, Fragment)
    name = dest or cg.fresh("matrix")
    if dest is None:
        cg.declare(t, name)
    if t.layout in ("acc", "a_ldmatrix"):
        _emit_a(cg, view, t, name)
    else:
        _emit_b(cg, view, t, name)
    return name


def _emit_a(cg: Emitter, view: View, t: Fragment, name: str) -> None:
    """Four matrices cover 16 rows and two rows of bytes side by side."""
    assert isinstance(view.type, SmemView)
    load = helper(cg, 4, t.dtype, trans=view.type.transposed)
    deep = 2 * per_row(t.dtype)
    steps = t.shape[1] // deep
    with cg.unrolled(t.shape[0] // (16 * t.warps)), cg.unrolled(steps, "j"):
        address = acc_addresses(cg, view, t, f"j * {deep}", 4)
        cg.line(f"{load}({name} + (i * {steps} + j) * 4, {address});")


def _emit_b(cg: Emitter, view: View, t: Fragment, name: str) -> None:
    """Four matrices cover K 16 (of 16-bit elements) and N 16; the last 8 columns of N take two."""
    assert isinstance(view.type, SmemView)
    # The registers hold neighbours along K: rows of the matrices if K lies along memory.
    trans = not view.type.transposed
    deep, steps = 2 * per_row(t.dtype), t.shape[1] // 8
    pairs, single = matrix_blocks(t.shape[1])
    with cg.unrolled(t.shape[0] // deep):
        if pairs:
            load = helper(cg, 4, t.dtype, trans=trans)
            with cg.unrolled(pairs, "j"):
                address = _b_address(cg, view, deep, "j * 16", four=True)
                cg.line(f"{load}({name} + (i * {steps} + j * 2) * 2, {address});")
        if single:
            load = helper(cg, 2, t.dtype, trans=trans)
            address = _b_address(cg, view, deep, str(pairs * 16), four=False)
            cg.line(f"{load}({name} + (i * {steps} + {pairs * 2}) * 2, {address});")


def _b_address(cg: Emitter, view: View, deep: int, column: str, *, four: bool) -> str:
    """Matrices go along K first, ``deep`` elements for two, then to the next 8 columns of N."""
    assert isinstance(view.type, SmemView)
    next_n = " + lane / 16 * 8" if four else ""
    if view.type.transposed:
        k = f"i * {deep} + lane / 8 % 2 * {deep // 2}"
        return cg.smem_address(view, [k, f"{column} + lane % 8{next_n}"])
    return cg.smem_address(view, ["i * 16 + lane % 16", f"{column}{next_n}"])


def helper(cg: Emitter, matrices: int, dtype: DType, *, trans: bool) -> str:
    """Helper that loads two or four matrices into consecutive words of a fragment."""
    floats = word(dtype).c == "float"
    name = f"ldmatrix_x{matrices}{'_trans' if trans else ''}{'_f32' if floats else ''}"
    c, target = ("float", "word") if floats else ("unsigned", "to")
    outputs = ", ".join(f'"=r"({target}[{i}])' for i in range(matrices))
    names = ", ".join(f"%{i}" for i in range(matrices))
    before = f"  unsigned word[{matrices}];\n" if floats else ""
    after = "".join(f"\n  to[{i}] = __uint_as_float(word[{i}]);" for i in range(matrices))
    code = f"""\
__device__ __forceinline__ void {name}({c}* to, unsigned from) {{
{before}  asm volatile(
      "ldmatrix.sync.aligned.m8n8.x{matrices}{".trans" if trans else ""}.shared.b16 "
      "{{{names}}}, [%{matrices}];"
      : {outputs} : "r"(from));{after if floats else ""}
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="ldmatrix",
        params=(
            Param("view", "place"),
            Param("operand", "static", "a", keyword_only=True),
        ),
        doc="Load the tile `view` from shared memory into a fragment. operand='a': an A operand of"
        " mma.sync or wgmma, rows a multiple of 16 for each warp of the unit. operand='b': a B"
        " operand of mma.sync with logical shape (K, N), N a multiple of 8, from `W[s].T` stored"
        " N x K; every warp of a warpgroup gets the whole of it. K is a multiple of 32 bytes."
        " 16-bit elements come in the acc and b layouts, and may be stored the other way round (a"
        " transposed view is loaded with .trans). Elements of i8, u8, e4m3, e5m2, tf32 and f32 come"
        " in layouts of their own, for mma and wgmma.",
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
