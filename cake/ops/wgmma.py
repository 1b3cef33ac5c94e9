"""``wgmma``: acc += A . B on the tensor cores of one warpgroup, asynchronously (sm_90a)."""

from __future__ import annotations

from typing import Any

import numpy as np

from cake.ir.dtypes import DType
from cake.ir.nodes import Call, Expr, VarRef, View
from cake.ir.types import Fragment, SmemView, Type, Void
from cake.ops import check
from cake.ops.base import (
    Access,
    Cost,
    Effects,
    Param,
    Primitive,
    SyncEffect,
    Typed,
    TypingContext,
    operand,
    register,
)
from cake.ops.machine import Unit
from cake.ops.matmul import accumulate, wide
from cake.ops.tiles import freeze
from cake.ops.values import from_matrix, to_matrix
from cake.ops.wgmma_emission import emit_wgmma
from cake.ops.wgmma_operand import K_BYTES, check_offsets, logical_shape, typed_operand

ROWS = 64
"""Rows of the accumulator: m of the instruction."""


# -- typing ----------------------------------------------------------------------------------------


def _typing(t: TypingContext, call: Call) -> Typed:
    acc, a, b = (operand(call, n) for n in ("acc", "a", "b"))
    d = _accumulator(t, acc)
    mn_major = isinstance(b, View) and isinstance(b.type, SmemView) and b.type.dtype.bits == 16
    right, b_tile = typed_operand(t, b, "b", mn_major)
    left, a_dtype, (rows, depth) = _left(t, a, mn_major)
    if rows != ROWS:
        t.fail(f"A must have {ROWS} rows, got {rows}", a, facts={"rows": rows})
    k, n = logical_shape(b_tile)
    if k != depth:
        t.fail(
            f"A is {rows}x{depth} and B is {k}x{n}: the inner dimensions differ",
            b,
            helps=("a tile stored as (N, K) is used as B[...].T",) if n == depth else (),
            facts={"k_of_a": depth, "k_of_b": k},
        )
    if n != d.shape[1]:
        t.fail(f"B has {n} columns, the accumulator {d.shape[1]}", b)
    _form(t, a_dtype, b_tile.dtype, d, n, k)
    init = operand(call, "init")
    if init is not None:
        init = check.uniform(t, check.boolean(t, init, "init"), "init")
    return Typed(Void(), (acc, left, right, init))


def _accumulator(t: TypingContext, acc: Expr | None) -> Fragment:
    e, d = check.fragment(t, acc, "the accumulator")
    if not isinstance(e, VarRef):
        t.fail("the accumulator must be a variable", e, helps=("assign it to a name first",))
    if d.layout != "acc" or d.warps != 4 or d.shape[0] != ROWS:
        t.fail(f"the accumulator must have {ROWS} rows in the acc layout, got {d}", e)
    return d


def _left(t: TypingContext, a: Expr | None, mn_major: bool) -> tuple[Expr, DType, tuple[int, int]]:
    """A from shared memory, or from registers as a fragment."""
    if a is not None and isinstance(a.type, Fragment):
        wanted = "acc" if a.type.dtype.bits == 16 else "a_ldmatrix"
        if a.type.layout != wanted:
            t.fail(
                f"A of {a.type.dtype} in registers must have the {wanted} layout, got {a.type}",
                a,
                helps=("cast(x, bf16) packs an accumulator", "a_operand(x) makes an A operand"),
            )
        return a, a.type.dtype, a.type.shape
    e, tile = typed_operand(t, a, "a", mn_major)
    return e, tile.dtype, logical_shape(tile)


def _form(t: TypingContext, a: DType, b: DType, d: Fragment, n: int, k: int) -> None:
    """An instruction for these types exists and divides the tile."""
    form = t.target.wgmma_form(a.name, b.name, d.dtype.name, n)
    if form is None:
        same = [f for f in t.target.wgmma if (f.a, f.b, f.acc) == (a.name, b.name, d.dtype.name)]
        if same:
            t.fail(f"n = {n} is not admitted: {same[0]}", facts={"n": n})
        pairs = ", ".join(sorted({f"{f.a} x {f.b} -> {f.acc}" for f in t.target.wgmma}))
        t.fail(f"{a} x {b} -> {d.dtype} is not admitted; there are {pairs}")
    if k % form.k:
        t.fail(
            f"K must be a multiple of {form.k} for {a}, got {k}",
            facts={"k": k, "multiple_of": form.k},
        )


# -- effects, meaning, cost ------------------------------------------------------------------------


def _effects(call: Call) -> Effects:
    a = operand(call, "a")
    left = (
        Access("read", 1, "smem", "async", "wgmma")
        if isinstance(a, View)
        else Access("read", 1, "regs", "generic", "wgmma")
    )
    return (
        Access("read", 0, "regs", "generic", "wgmma"),
        Access("write", 0, "regs", "generic", "wgmma"),
        left,
        Access("read", 2, "smem", "async", "wgmma"),
        SyncEffect("commit", "wgmma"),
    )


def _meaning(unit: Unit, call: Call) -> None:
    acc, a, b, init = call.args
    assert acc is not None
    assert a is not None
    assert isinstance(b, View)
    assert isinstance(acc.type, Fragment)
    d, k = acc.type, K_BYTES // _element(b.type).bytes
    overwrite = init is not None and bool(unit.eval(init))
    left = _fetch_left(unit, call, a)
    check_offsets(unit, call, b, "b")
    right = freeze(unit, b)
    registers = unit.registers(acc, read=not overwrite)

    def fetch() -> tuple[Any, Any]:
        tile = unit.smem_read(right, proxy="async")
        return left(), wide(tile, _element(b.type))

    def land(operands: tuple[Any, Any]) -> None:
        before = to_matrix(d, np.zeros_like(registers) if overwrite else registers)
        registers[...] = from_matrix(d, accumulate(before, *operands, k, unit.arithmetic.exact))

    held = a if isinstance(a, VarRef) else None
    unit.issue("wgmma", fetch, land, writes_register=acc, reads_register=held)
    unit.commit("wgmma")


def _fetch_left(unit: Unit, call: Call, a: Expr) -> Any:
    """How to read A when the product runs: the registers or the tile named at the issue."""
    if isinstance(a, View):
        check_offsets(unit, call, a, "a")
        tile = freeze(unit, a)
        return lambda: wide(unit.smem_read(tile, proxy="async"), _element(a.type))
    assert isinstance(a.type, Fragment)
    t, registers = a.type, unit.eval(a)
    return lambda: wide(to_matrix(t, registers), t.dtype)


def _element(t: Type) -> DType:
    assert isinstance(t, SmemView)
    return t.dtype


def _cost(call: Call, threads: int) -> Cost:
    acc, a, b, _ = call.args
    assert acc is not None
    assert a is not None
    assert b is not None
    assert isinstance(acc.type, Fragment)
    assert isinstance(b.type, SmemView)
    n, k = acc.type.shape[1], logical_shape(b.type)[0]
    size = b.type.dtype.bytes
    instructions = k * size // K_BYTES
    return Cost(
        tensor=ROWS * n * k,
        tensor_dtype=b.type.dtype.name,
        issue=(instructions + 2) * (threads // 32),
        smem=k * size * (n + (ROWS if isinstance(a, View) else 0)),
    )


register(
    Primitive(
        name="wgmma",
        params=(
            Param("acc"),
            Param("a"),
            Param("b", "place"),
            Param("init", default=False),
        ),
        doc="""acc (64, N) += A (64, K) . B (K, N), one group of wgmma instructions.

``acc`` is an f32 (i32 for i8 and u8) fragment variable; f16 for f16 and fp8 operands as well, half
the registers. ``a`` is a shared-memory view, or a fragment of a (64, K) tile in registers: 16-bit
elements in the acc layout, others as ldmatrix or a_operand bring them.
``b`` is a view: ``T.T`` of a tile stored as (N, K), or for 16-bit types a tile stored as (K, N).
Views lie in buffers with swizzle 32, 64 or 128, at row offsets that are multiples of 8 and column
offsets that are multiples of 32 bytes (of the swizzle, if they are known only at run time).
``init=True`` (or a uniform bool) starts from zero instead of ``acc``. The product is in flight
until ``wgmma_wait``: till then ``acc`` must not be read or written except by further wgmma, and
the tiles and registers of A and B must not change. Each instruction's sums are rounded to the type
of ``acc``; the order within one is not specified.""",
        source="PTX ISA, wgmma.mma_async, wgmma.fence, wgmma.commit_group, Matrix Descriptor",
        typing=_typing,
        effects=_effects,
        meaning=_meaning,
        cost=_cost,
        emit={"sm_90": emit_wgmma},
        requires="wgmma",
        convergent=True,
        units=frozenset({"warpgroup"}),
    )
)
