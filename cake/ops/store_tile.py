"""Stores of fragments and vectors: every thread stores the elements it holds.

An ``acc`` fragment gives each thread pairs of neighbouring columns, stored together where the
address allows it. PTX ISA, "Matrix Fragments for mma.m16n8k16" and "wgmma".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BOOL, U16
from cake.ir.fragments import col_coordinates, coordinates, row_coordinates
from cake.ir.nodes import Expr, TensorRef, View
from cake.ir.program import Smem
from cake.ir.types import (
    WARP,
    ColVector,
    Fragment,
    RowVector,
    SmemView,
    TensorPlace,
    element_dtype,
    registers,
)
from cake.ops import check
from cake.ops.base import Cost, TypingContext
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.memory_access import (
    Form,
    active,
    dtype_of,
    element,
    indices,
    store_element,
    store_words,
    word,
)
from cake.ops.tiles import inside, logical_shape, open_sides, typed_multiple


def tile_shape(value: Expr) -> tuple[int, ...]:
    """The extents that a fragment or vector covers."""
    t = value.type
    if isinstance(t, Fragment):
        return t.shape
    return (t.rows,) if isinstance(t, RowVector) else (registers(t) * 4,)


# -- typing ----------------------------------------------------------------------------------------


def typed(t: TypingContext, to: Expr, value: Expr) -> None:
    """A fragment or whole vector of the destination's element type, and a uniform destination."""
    v = value.type
    dtype = dtype_of(to)
    if element_dtype(v) != dtype:
        t.fail(
            f"the destination holds {dtype}, the value {element_dtype(v)}",
            value,
            helps=(f"cast(..., {dtype}) converts",),
        )
    if isinstance(v, RowVector | ColVector) and v.partial:
        what, group = ("row", "quad") if isinstance(v, RowVector) else ("column", "octet")
        t.fail(
            f"a partial {what} vector has a candidate in each lane that holds the {what}",
            value,
            helps=(f"make it whole with reduce_{group} or argmin_{group} first",),
        )
    if isinstance(v, Fragment) and (v.layout != "acc" or dtype == BOOL):
        t.fail(f"only acc fragments of numbers are stored, got {v}", value)
    for i in indices(to):
        check.uniform(t, i, "a coordinate of a tile")
    shape = tile_shape(value)
    if isinstance(to.type, TensorPlace):
        if to.type.rank < len(shape):
            t.fail(f"a fragment needs a tensor of two axes, got {to.type}", to)
        return
    assert isinstance(to, View)
    assert isinstance(to.type, SmemView)
    if logical_shape(to.type) != shape:
        want = "x".join(map(str, shape))
        t.fail(f"the view must have the shape {want} of the value, got {to.type}", to)
    buffer = t.resource(to.base)
    assert isinstance(buffer, Smem)
    if isinstance(v, Fragment) and pairs_in(to.type, buffer):
        typed_multiple(t, to.offsets[-1], 2, "the last offset of the view")


def pairs_in(view: SmemView, buffer: Smem) -> bool:
    """Do two neighbouring columns of a fragment lie side by side at an even element?"""
    return not view.transposed and buffer.shape[-1] % 2 == 0


# -- meaning ---------------------------------------------------------------------------------------


def meaning(unit: Unit, to: Expr, value: Expr, mask: Expr | None, *, clip: bool) -> None:
    """Write the elements that each thread holds, once each."""
    t = value.type
    on = active(unit, mask, 2)
    lane = np.arange(unit.threads)[:, None] % WARP
    if isinstance(t, Fragment):
        index: tuple[Any, ...] = coordinates(t)
    elif isinstance(t, RowVector):
        index, on = (row_coordinates(t),), on & (lane % 4 == 0)
    else:
        assert isinstance(t, ColVector)
        first_warp = np.arange(unit.threads)[:, None] < WARP
        index = (col_coordinates(t, unit.threads // WARP),)
        on = on & (lane < 4) & first_warp
    values = unit.eval(value)
    if isinstance(to, View):
        unit.smem_write(to, values, list(index), mask=on)
        return
    assert isinstance(to, TensorRef)
    zero = np.zeros_like(index[0])
    offsets = [zero] * (len(to.index) - len(index)) + list(index)
    unit.global_write(to, values, offsets, mask=on, clip=clip)


def cost(to: Expr, value: Expr, threads: int) -> Cost:
    """A pair of elements a store, with its address and bounds."""
    size = dtype_of(to).bytes
    for extent in tile_shape(value):
        size *= extent
    stores = max(1, registers(value.type) // 2)
    work = Cost(issue=4 * stores * (threads // WARP))
    return work + (Cost(smem=size) if isinstance(to, View) else Cost(gmem_write=size))


# -- emission --------------------------------------------------------------------------------------


def emit(cg: Emitter, form: Form, to: Expr, value: Expr, *, clip: bool) -> None:
    """Stores of a fragment or vector."""
    if not isinstance(value.type, Fragment):
        _emit_vector(cg, form, to, value, clip=clip)
    elif isinstance(to, View):
        _emit_shared(cg, form, to, value)
    else:
        assert isinstance(to, TensorRef)
        _emit_global(cg, form, to, value, clip=clip)


def _emit_vector(cg: Emitter, form: Form, to: Expr, value: Expr, *, clip: bool) -> None:
    """One lane of each group that agrees stores its elements."""
    t = value.type
    if isinstance(t, RowVector):
        start = f"warp_in_unit * {t.rows // t.warps} + " if t.warps > 1 else ""
        index, one = f"{start}i / 2 * 16 + i % 2 * 8 + lane / 4", "lane % 4 == 0"
    else:
        index, one = "i / 2 * 8 + lane * 2 + i % 2", "unit_thread < 4"
    store = store_element(cg, form, dtype_of(to))
    array_value = cg.element(value, "i", t)
    with cg.block(f"if ({one})"), cg.unrolled(registers(t)):
        if isinstance(to, View):
            cg.line(f"{store}({cg.smem_address(to, [index])}, {array_value});")
            return
        assert isinstance(to, TensorRef)
        last = len(to.index) - 1
        line = f"{store}({cg.global_pointer(to, ['0'] * last + [index])}, {array_value});"
        if clip and last in open_sides(cg.program, to, tile_shape(value)):
            line = f"if ({inside(cg, to, last, index)}) {line}"
        cg.line(line)


def row_of(t: Fragment) -> str:
    """Row of a thread's registers in row ``i`` of atoms, upper (h = 0) or lower half."""
    start = f"warp_in_unit * {t.shape[0] // t.warps} + " if t.warps > 1 else ""
    return f"{start}i * 16 + h * 8 + lane / 4"


COLUMN = "j * 8 + lane % 4 * 2"
"""First column of a thread's pair in column ``j`` of atoms."""


def _pair(t: Fragment, array: str) -> tuple[str, str, str]:
    """C expressions of a thread's pair in atom (i, j), half h: both, low and high element.

    Both are a pointer to the first word, for 8-bit elements 16 bits.
    """
    atom = f"(i * {t.shape[1] // 8} + j)"
    if t.dtype.bits == 32:
        first = f"{array}[{atom} * 4 + h * 2]"
        return f"&{first}", first, f"{array}[{atom} * 4 + h * 2 + 1]"
    if t.dtype.bits == 16:
        packed = f"{array}[{atom} * 2 + h]"
        return f"&{packed}", f"(unsigned short){packed}", f"(unsigned short)({packed} >> 16)"
    half = f"({array}[{atom}] >> h * 16)"
    return f"(unsigned short){half}", f"(unsigned char){half}", f"(unsigned char)({half} >> 8)"


def _store_both(cg: Emitter, form: Form, t: Fragment) -> str:
    """Helper that stores a pair at once."""
    if t.dtype.bits == 8:
        return store_element(cg, form, U16)
    return store_words(cg, form, t.dtype, 2 * t.dtype.bytes // word(t.dtype).bytes)


def _emit_shared(cg: Emitter, form: Form, to: View, value: Expr) -> None:
    t = value.type
    assert isinstance(t, Fragment)
    assert isinstance(to.type, SmemView)
    buffer = cg.resource(to.base)
    assert isinstance(buffer, Smem)
    both, low, high = _pair(t, cg.array(value))
    row = row_of(t)
    with cg.unrolled(atom_rows(t)), cg.unrolled(2, "h"), cg.unrolled(t.shape[1] // 8, "j"):
        if pairs_in(to.type, buffer):
            store = _store_both(cg, form, t)
            cg.line(f"{store}({cg.smem_address(to, [row, COLUMN])}, {both});")
            return
        store = store_element(cg, form, t.dtype)
        cg.line(f"{store}({cg.smem_address(to, [row, COLUMN])}, {low});")
        cg.line(f"{store}({cg.smem_address(to, [row, f'{COLUMN} + 1'])}, {high});")


def atom_rows(t: Fragment) -> int:
    """Rows of atoms in a warp's part of a fragment."""
    return t.shape[0] // (16 * t.warps)


def _emit_global(cg: Emitter, form: Form, to: TensorRef, value: Expr, *, clip: bool) -> None:
    """Rows of pairs. Whether pairs are aligned depends on strides, so it is asked at run time."""
    t = value.type
    assert isinstance(t, Fragment)
    both, low, high = _pair(t, cg.array(value))
    last = len(to.index) - 1
    lead = ["0"] * (last - 1)
    open_axes = open_sides(cg.program, to, t.shape) if clip else ()
    store = _store_pair(cg, form, t)
    pair = 2 * t.dtype.bytes
    paired, row = cg.fresh("paired"), row_of(t)
    origin = cg.global_pointer(to)
    below = cg.global_pointer(to, [*lead, "1", "0"])
    cg.line(f"// Pairs of columns go together where every row starts on {pair} bytes.")
    cg.line(
        f"const bool {paired} = (((unsigned long long){origin}"
        f" | (unsigned long long){below}) & {pair - 1}) == 0;"
    )
    with cg.unrolled(atom_rows(t)), cg.unrolled(2, "h"):
        head = inside(cg, to, last - 1, row) if last - 1 in open_axes else ""
        with cg.block(f"if ({head})" if head else ""), cg.unrolled(t.shape[1] // 8, "j"):
            at = cg.global_pointer(to, [*lead, row, COLUMN])
            bounds = "true, true"
            if last in open_axes:
                bounds = f"{inside(cg, to, last, COLUMN)}, {inside(cg, to, last, f'{COLUMN} + 1')}"
            cg.line(f"{store}({at}, {both}, {low}, {high}, {paired}, {bounds});")


def _store_pair(cg: Emitter, form: Form, t: Fragment) -> str:
    one = store_element(cg, form, t.dtype)
    two = _store_both(cg, form, t)
    c = element(t.dtype).c
    both = "unsigned short both" if t.dtype.bits == 8 else f"const {word(t.dtype).c}* both"
    name = f"store_pair_{form.suffix}_{element(t.dtype).ptx}"
    code = f"""\
// Two neighbours: together if `paired`, each only if it lies inside.
__device__ __forceinline__ void {name}(
    {c}* at, {both}, {c} first, {c} second,
    bool paired, bool first_inside, bool second_inside) {{
  if (paired && first_inside && second_inside) {{
    {two}(at, both);
  }} else {{
    if (first_inside) {one}(at, first);
    if (second_inside) {one}(at + 1, second);
  }}
}}"""
    return cg.helper(name, code)
