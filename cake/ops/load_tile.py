"""``load_tile``: a tile of global or shared memory as an acc fragment, each thread its own part.

The counterpart of ``store`` of a fragment: pairs of neighbouring columns move together where the
address allows it. PTX ISA, "Matrix Fragments for mma.m16n8k16" and "wgmma".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import F32, I32, U32
from cake.ir.fragments import coordinates
from cake.ir.nodes import Call, Expr, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import WARP, Fragment, SmemView
from cake.ops import check, fills
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    Typed,
    TypingContext,
    operand,
    register,
    static,
)
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    Form,
    dtype_of,
    element,
    indices,
    load_element,
    load_words,
    memory_of,
    word,
)
from cake.ops.store_tile import COLUMN, atom_rows, pairs_in, row_of
from cake.ops.tiles import inside, logical_shape, open_sides, typed_multiple


def _typing(t: TypingContext, call: Call) -> Typed:
    source = memory_of(t, call.args[0], "the source")
    dtype = dtype_of(source)
    if dtype.bits != 16 and dtype not in (F32, I32, U32):
        t.fail(
            f"fragments of 16 bits, f32, i32 or u32 are loaded, the source holds {dtype}", source
        )
    for i in indices(source):
        check.uniform(t, i, "a coordinate of a tile")
    fills.flag(t, call, "clip")
    warps = t.unit_threads // WARP
    rows, columns = _shape(t, call, source)
    at = operand(call, "shape") or source
    rows = fills.multiple(t, rows, 16 * warps, "the rows of the unit's fragment", at)
    columns = fills.multiple(t, columns, 8, "the columns of a fragment", at)
    return Typed(Fragment(dtype, (rows, columns), "acc", warps), (source, *call.args[1:]))


def _shape(t: TypingContext, call: Call, source: Expr) -> tuple[Any, Any]:
    e, shape = operand(call, "shape"), static(call, "shape")
    if isinstance(source, TensorRef):
        if not isinstance(shape, tuple) or len(shape) != 2:
            t.fail(f"shape=(rows, columns) says how much of a tensor is loaded, got {shape!r}", e)
        if len(source.index) < 2:
            t.fail(f"a fragment needs a tensor of two axes, got {source.type}", source)
        return shape
    if e is not None:
        t.fail("a view has its own shape: leave shape out", e, helps=("slice the view",))
    _, tile = check.smem(t, source, "the source", rank=2)
    assert isinstance(source, View)
    buffer = t.resource(source.base)
    assert isinstance(buffer, Smem)
    if pairs_in(tile, buffer):
        typed_multiple(t, source.offsets[-1], 2, "the last offset of the view")
    rows, columns = logical_shape(tile)
    return rows, columns


def _effects(call: Call) -> Effects:
    return (Access("read", 0, "smem" if isinstance(call.args[0], View) else "global"),)


def _meaning(unit: Unit, call: Call) -> Any:
    source, t = call.args[0], call.type
    assert source is not None
    assert isinstance(t, Fragment)
    index = list(coordinates(t))
    if isinstance(source, View):
        return unit.smem_read(source, index)
    zero = np.zeros_like(index[0])
    offsets = [zero] * (len(indices(source)) - 2) + index
    return unit.global_read(source, offsets, fill=0 if static(call, "clip") else None)


def _cost(call: Call, threads: int) -> Cost:
    t = call.type
    assert isinstance(t, Fragment)
    size = t.shape[0] * t.shape[1] * t.dtype.bytes
    work = Cost(issue=2 * t.registers * (threads // WARP))
    view = isinstance(call.args[0], View)
    return work + (Cost(smem=size) if view else Cost(gmem_read=size))


# -- emission --------------------------------------------------------------------------------------


def _emit(cg: Emitter, call: Call, dest: str | None) -> str:
    source, t = call.args[0], call.type
    assert isinstance(t, Fragment)
    name = dest or cg.fresh("tile")
    if dest is None:
        cg.declare(t, name)
    if isinstance(source, View):
        _emit_shared(cg, source, t, name)
    else:
        assert isinstance(source, TensorRef)
        _emit_global(cg, source, t, name, clip=static(call, "clip"))
    return name


def _first_word(t: Fragment, name: str) -> str:
    """Pointer to the words of a thread's pair in atom (i, j), half h."""
    per_atom = 4 * t.dtype.bits // 32
    return f"{name} + (i * {t.shape[1] // 8} + j) * {per_atom} + h * {per_atom // 2}"


def _emit_shared(cg: Emitter, source: View, t: Fragment, name: str) -> None:
    assert isinstance(source.type, SmemView)
    buffer = cg.resource(source.base)
    assert isinstance(buffer, Smem)
    form, row = Form("shared"), row_of(t)
    both = load_words(cg, form, t.dtype, 2 * t.dtype.bytes // word(t.dtype).bytes)
    one = load_element(cg, form, t.dtype)
    with cg.unrolled(atom_rows(t)), cg.unrolled(2, "h"), cg.unrolled(t.shape[1] // 8, "j"):
        at = cg.smem_address(source, [row, COLUMN])
        if pairs_in(source.type, buffer):
            cg.line(f"{both}({_first_word(t, name)}, {at});")
            return
        after = cg.smem_address(source, [row, f"{COLUMN} + 1"])
        put = cg.helper(*_put_pair(t))
        cg.line(f"{put}({_first_word(t, name)}, {one}({at}), {one}({after}));")


def _put_pair(t: Fragment) -> tuple[str, str]:
    """A function that puts two elements into a fragment's words."""
    c, w = element(t.dtype).c, word(t.dtype).c
    body = "to[0] = first; to[1] = second;"
    if t.dtype.bits == 16:
        body = "to[0] = first | (unsigned)second << 16;"
    name = f"put_pair_{element(t.dtype).ptx}"
    code = f"__device__ __forceinline__ void {name}({w}* to, {c} first, {c} second) {{ {body} }}"
    return name, code


def _emit_global(cg: Emitter, source: TensorRef, t: Fragment, name: str, *, clip: bool) -> None:
    """Rows of pairs. Whether pairs are aligned depends on strides, so it is asked at run time."""
    last = len(source.index) - 1
    lead = ["0"] * (last - 1)
    open_axes = open_sides(cg.program, source, t.shape) if clip else ()
    load = _load_pair(cg, t)
    paired, row = cg.fresh("paired"), row_of(t)
    origin, below = cg.global_pointer(source), cg.global_pointer(source, [*lead, "1", "0"])
    cg.line(
        f"const bool {paired} = (((unsigned long long){origin}"
        f" | (unsigned long long){below}) & {2 * t.dtype.bytes - 1}) == 0;"
    )
    with cg.unrolled(atom_rows(t)), cg.unrolled(2, "h"), cg.unrolled(t.shape[1] // 8, "j"):
        bounds = (
            [[], []] if last - 1 not in open_axes else [[inside(cg, source, last - 1, row)]] * 2
        )
        if last in open_axes:
            columns = (COLUMN, f"{COLUMN} + 1")
            bounds = [
                [*b, inside(cg, source, last, c)] for b, c in zip(bounds, columns, strict=True)
            ]
        conditions = ", ".join(" && ".join(b) or "true" for b in bounds)
        at = cg.global_pointer(source, [*lead, row, COLUMN])
        cg.line(f"{load}({_first_word(t, name)}, {at}, {paired}, {conditions});")


def _load_pair(cg: Emitter, t: Fragment) -> str:
    form = Form("global")
    one = load_element(cg, form, t.dtype)
    two = load_words(cg, form, t.dtype, 2 * t.dtype.bytes // word(t.dtype).bytes)
    put = cg.helper(*_put_pair(t))
    c, w = element(t.dtype).c, word(t.dtype).c
    name = f"load_pair_{element(t.dtype).ptx}"
    code = f"""\
// Two neighbours: together if `paired`; zero where outside.
__device__ __forceinline__ void {name}(
    {w}* to, const {c}* at, bool paired, bool first_inside, bool second_inside) {{
  if (paired && first_inside && second_inside) {{
    {two}(to, at);
  }} else {{
    const {c} first = first_inside ? {one}(at) : ({c})0;
    const {c} second = second_inside ? {one}(at + 1) : ({c})0;
    {put}(to, first, second);
  }}
}}"""
    return cg.helper(name, code)


register(
    Primitive(
        name="load_tile",
        params=(
            Param("source", "place"),
            Param("shape", "static", None),
            Param("clip", "static", True, keyword_only=True),
        ),
        doc="The tile at `source` as an acc fragment: `shape` (rows, columns) of a tensor along its"
        " last two axes, or a shared view of two axes, which has a shape of its own. Elements have"
        " 16 bits or are f32, i32 or u32. Rows are a multiple of 16 for a warp, of 64 for a"
        " warpgroup, columns of 8. Elements outside the tensor read as zero unless clip=False."
        " ldmatrix loads 16-bit tiles of shared memory faster.",
        source="PTX ISA 9.0, ld",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"": _emit},
    )
)
