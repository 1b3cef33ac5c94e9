"""``tcgen05_mma``: a product of shared tiles into tensor memory (sm_100a), by a CTA or a pair.

One thread issues; the product is asynchronous and its completion is told by ``tcgen05_commit``.
In a pair, each CTA holds 128 rows of A and of the accumulator, and half of the columns of B.
Operands are K-major swizzled views, described as for wgmma with other constants. (PTX ISA,
"tcgen05 Matrix Descriptors", "Instruction descriptor".)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import BF16, E4M3, E5M2, F16, TF32, DType, numpy_dtype
from cake.ir.nodes import Call, Const, Expr, View
from cake.ir.program import PAIR, Smem, Tmem
from cake.ir.types import SmemView, TmemView, Void
from cake.ops import check, pairs
from cake.ops.base import Access, Cost, Effects, Param, Primitive, Typed, TypingContext, register
from cake.ops.emit import Emitter
from cake.ops.machine import Unit
from cake.ops.matmul import accumulate, wide
from cake.ops.tiles import freeze, logical_shape
from cake.ops.tmem import LANES, tile_address, tile_column, typed_tile
from cake.ops.wgmma_operand import (
    CORE_ROWS,
    K_BYTES,
    check_offsets,
    encode,
    matrix_operand,
    typed_operand,
)

KIND = {BF16: "f16", F16: "f16", TF32: "tf32", E4M3: "f8f6f4", E5M2: "f8f6f4"}
_FORMAT = {F16: 0, BF16: 1, TF32: 2, E4M3: 0, E5M2: 1}
_SWIZZLE = {128: 2, 64: 4, 32: 6}
"""Bits 61-63 of the matrix descriptor."""


def _typing(t: TypingContext, call: Call) -> Typed:
    tile, d = typed_tile(t, call.args[0], "the accumulator")
    a, a_tile = typed_operand(t, call.args[1], "a", False)
    b, b_tile = typed_operand(t, call.args[2], "b", False)
    tiles = t.resource(tile.base)
    assert isinstance(tiles, Tmem)
    group = PAIR if tiles.pair else 1
    (rows, depth), (k, part) = logical_shape(a_tile), logical_shape(b_tile)
    n = part * group
    if (rows, n) != d.shape:
        both = f" in each of {group} CTAs" if tiles.pair else ""
        t.fail(f"A has {rows} rows and B {part} columns{both}, the accumulator is {d}", tile)
    if k != depth:
        t.fail(
            f"A is {rows}x{depth} and B is {k}x{part}: the inner dimensions differ",
            b,
            facts={"k_of_a": depth, "k_of_b": k},
        )
    form = t.target.tcgen05_form(
        a_tile.dtype.name, b_tile.dtype.name, d.dtype.name, m=LANES * group, n=n, cta_group=group
    )
    if form is None or a_tile.dtype not in KIND or b_tile.dtype not in KIND:
        t.fail(
            f"{a_tile.dtype} x {b_tile.dtype} -> {d.dtype} with m = {rows * group} and n = {n} is"
            " not admitted",
            b,
            helps=(
                f"n is a multiple of {16 * group} up to 256; operands are f16, bf16, tf32, e4m3 or"
                " e5m2",
            ),
        )
    if k % form.k:
        t.fail(f"K must be a multiple of {form.k} for {a_tile.dtype}, got {k}", b)
    init = call.args[3]
    if init is not None:
        init = check.uniform(t, check.boolean(t, init, "init"), "init")
    return Typed(Void(), (tile, a, b, init))


def _effects(call: Call) -> Effects:
    return (
        Access("read", 0, "tmem", "async", "tcgen05"),
        Access("write", 0, "tmem", "async", "tcgen05"),
        Access("read", 1, "smem", "async", "tcgen05"),
        Access("read", 2, "smem", "async", "tcgen05"),
    )


def _operands(call: Call) -> tuple[View, View, DType, tuple[int, int]]:
    a, b = call.args[1], call.args[2]
    assert isinstance(a, View)
    assert isinstance(b, View)
    assert isinstance(b.type, SmemView)
    k, n = logical_shape(b.type)
    return a, b, b.type.dtype, (k, n)


def _meaning(unit: Unit, call: Call) -> None:
    if not pairs.acts(unit):
        return
    a, b, dtype, _ = _operands(call)
    tile, init = call.args[0], call.args[3]
    assert isinstance(tile, View)
    assert isinstance(tile.type, TmemView)
    kind, n, column = tile.type.dtype, tile.type.shape[1], tile_column(unit, tile)
    ranks = pairs.ranks(unit.program)
    memories = [unit.tensor_memory(rank) for rank in ranks]
    overwrite = init is not None and bool(unit.eval(init))
    check_offsets(unit, call, a, "a")
    check_offsets(unit, call, b, "b")
    left, right = freeze(unit, a), freeze(unit, b)

    def read(view: Expr) -> list[Any]:
        return [wide(unit.smem_read(view, proxy="async", peer=rank), dtype) for rank in ranks]

    def fetch() -> tuple[list[Any], Any]:
        """The rows of each CTA, and the columns of all."""
        return read(left), np.concatenate(read(right), axis=1)

    def land(operands: tuple[list[Any], Any]) -> None:
        zero, k = np.zeros((LANES, n), numpy_dtype(kind)), K_BYTES // dtype.bytes
        for memory, rows in zip(memories, operands[0], strict=True):
            before = zero if overwrite else memory.read(column, n, kind)
            memory.write(column, accumulate(before, rows, operands[1], k, unit.arithmetic.exact))

    for memory in memories:
        memory.issue(column, n)
    unit.issue("tcgen05", fetch, land)


def _cost(call: Call, threads: int) -> Cost:
    tile, (_, _, dtype, (k, part)) = call.args[0], _operands(call)
    assert tile is not None
    assert isinstance(tile.type, TmemView)
    return Cost(
        tensor=LANES * tile.type.shape[1] * k,
        tensor_dtype=dtype.name,
        issue=2 * k * dtype.bytes // K_BYTES,
        smem=k * dtype.bytes * (part + LANES),
    )


def instruction_descriptor(a: DType, b: DType, m: int, n: int) -> int:
    """Types, sizes and majorness of an instruction with an f32 accumulator and K-major operands.

    ``m`` and ``n`` are those of the whole product, of both CTAs of a pair.
    """
    return 1 << 4 | _FORMAT[a] << 7 | _FORMAT[b] << 10 | n // 8 << 17 | m // 16 << 24


def _emit(cg: Emitter, call: Call, dest: str | None) -> None:
    a, b, dtype, (_, part) = _operands(call)
    tile, init = call.args[0], call.args[3]
    assert isinstance(tile, View)
    assert isinstance(a.type, SmemView)
    group = pairs.group(cg.program)
    kind = KIND[dtype]
    words = instruction_descriptor(a.type.dtype, dtype, LANES * group, part * group)
    code = f"""\
__device__ __forceinline__ void tcgen05_mma_{kind}(
    unsigned d, unsigned long long a, unsigned long long b, unsigned form, unsigned accumulate) {{
  asm volatile(
      "{{\\n"
      ".reg .pred p;\\n"
      "setp.ne.b32 p, %4, 0;\\n"
      "tcgen05.mma.cta_group::{group}.kind::{kind} [%0], %1, %2, %3, p;\\n"
      "}}\\n" ::"r"(d), "l"(a), "l"(b), "r"(form), "r"(accumulate) : "memory");
}}"""
    name = cg.helper(f"tcgen05_mma_{kind}", code)
    a_steps = matrix_operand(a, _buffer(cg, a), "a").steps
    b_steps = matrix_operand(b, _buffer(cg, b), "b").steps
    with pairs.issuing(cg):
        d, left, right = cg.fresh("d"), cg.fresh("a"), cg.fresh("b")
        cg.line(f"const unsigned {d} = {tile_address(cg, tile)};")
        cg.line(f"const unsigned long long {left} = {_descriptor(cg, a)};")
        cg.line(f"const unsigned long long {right} = {_descriptor(cg, b)};")
        for i, (x, y) in enumerate(zip(a_steps, b_steps, strict=True)):
            more = "1" if i else _accumulates(cg, init)
            cg.line(f"{name}({d}, {left} + {x >> 4}, {right} + {y >> 4}, {words:#x}u, {more});")


def _buffer(cg: Emitter, view: View) -> Smem:
    buffer = cg.resource(view.base)
    assert isinstance(buffer, Smem)
    return buffer


def _descriptor(cg: Emitter, view: View) -> str:
    """Matrix descriptor of a K-major swizzled view: 8-row groups follow one another."""
    width = _buffer(cg, view).swizzle
    version = 1
    fields = encode(16) << 16 | encode(CORE_ROWS * width) << 32 | version << 46
    fields |= _SWIZZLE[width] << 61
    code = """\
__device__ __forceinline__ unsigned long long tcgen05_descriptor(
    unsigned at, unsigned long long fields) {
  return fields | (unsigned long long)((at & 0x3ffff) >> 4);
}"""
    name = cg.helper("tcgen05_descriptor", code)
    return f"{name}({cg.smem_address(view)}, {fields:#x}ull)"


def _accumulates(cg: Emitter, init: Expr | None) -> str:
    if init is None:
        return "1"
    if isinstance(init, Const):
        return "0" if init.value else "1"
    return f"!{cg.scalar(init)}"


register(
    Primitive(
        name="tcgen05_mma",
        params=(
            Param("acc", "place"),
            Param("a", "place"),
            Param("b", "place"),
            Param("init", default=False),
        ),
        doc="One thread starts acc (128, N) += A (128, K) . B (K, N). `acc` is a tile of tensor"
        " memory of f32; `a` a K-major swizzled view; `b` is `W.T` of a view stored (N, K). N is a"
        " multiple of 16 up to 256. init=True (or a uniform bool) starts from zero. Products of one"
        " warp follow one another in order; tcgen05_commit tells of their completion. With paired"
        " tensor memory the CTA that leads issues for both: each CTA has its 128 rows of `a` and of"
        " `acc`, and half of the N columns in its `b`; N is a multiple of 32.",
        source="PTX ISA 9.0, tcgen05.mma, Matrix Descriptor, Instruction descriptor",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"sm_10": _emit},
        requires="tcgen05",
        convergent=True,
        units=frozenset({"warp"}),
    )
)
