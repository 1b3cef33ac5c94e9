"""Construction of register values, lanes, loads of row and column vectors, thread indices."""

from typing import Any

import numpy as np
import pytest

from cake.ir.dtypes import BF16, BOOL, E4M3, F32, I32, I64, U32, DType, numpy_dtype
from cake.ir.fragments import col_coordinates, row_coordinates
from cake.ir.program import Smem
from cake.ir.types import ColVector, Fragment, RegArray, RowVector, Scalar, SmemView, Type
from tests.ops.fakes import (
    HERE,
    FakeEmitter,
    FakeTyping,
    FakeUnit,
    Finding,
    Refused,
    compiled,
    make,
    var,
    view,
)

WARP = FakeTyping(unit_threads=32)
WARPGROUP = FakeTyping()


def buffer(name: str, dtype: DType, shape: tuple[int, ...], swizzle: int = 0) -> Smem:
    return Smem(
        name=name, dtype=dtype, shape=shape, stages=None, swizzle=swizzle, pool=None, offset=None,
        loc=HERE,
    )  # fmt: skip


Q = buffer("Q", F32, (128,))
WITH_Q = FakeTyping(resources={"Q": Q})


def vector(n: int, offset: Any = 0, dtype: DType = F32, base: str = "Q") -> Any:
    return view(base, SmemView(dtype, (n,), 0), offsets=[offset])


# -- constructors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "args", "typing", "expected"),
    [
        ("fragment", (F32, (64, 24)), WARPGROUP, Fragment(F32, (64, 24), "acc", 4)),
        ("fragment", (BF16, (32, 16)), WARP, Fragment(BF16, (32, 16), "acc", 1)),
        ("row_vector", (F32, 128), WARPGROUP, RowVector(F32, 128, 4)),
        ("row_vector", (I32, 16), WARP, RowVector(I32, 16, 1)),
        ("col_vector", (F32, 24), WARP, ColVector(F32, 24)),
        ("registers", (BOOL, 3), WARP, RegArray(BOOL, 3)),
    ],
)
def test_the_unit_gives_the_distribution(
    op: str, args: tuple[Any, ...], typing: FakeTyping, expected: Type
) -> None:
    assert make(op, *args, typing=typing).type == expected


def test_operand_and_partial_are_part_of_the_type() -> None:
    b = make("fragment", BF16, (16, 8), operand="b", typing=WARP)
    assert b.type == Fragment(BF16, (16, 8), "b", 1)
    assert make("row_vector", F32, 64, float("inf"), partial=True).type == RowVector(
        F32, 64, 4, True
    )


@pytest.mark.parametrize(
    ("op", "args", "typing", "message"),
    [
        ("fragment", (F32, (32, 16)), WARPGROUP, "rows of a warpgroup's fragment must be a "
         "positive multiple of 64, got 32"),
        ("fragment", (F32, (16, 12)), WARP, "columns of a fragment must be a positive mul.* 8"),
        ("fragment", (I64, (16, 8)), WARP, "dtype must be one of f32, .*, got i64"),
        ("fragment", (F32, 64), WARP, r"shape must be \(rows, columns\), got 64"),
        ("fragment", ("f32", (16, 8)), WARP, "dtype must be an element type, got 'f32'"),
        ("fragment", (F32, (16, 8), 0.0, "a"), WARP, 'one of "acc", "b", .*, got \'a\''),
        ("fragment", (BF16, (64, 16), 0.0, "b"), WARPGROUP, "a warpgroup has no such"),
        ("fragment", (F32, (64, 1024)), WARPGROUP, "takes 512 registers of each thread, the "
         "limit is 255"),
        ("fragment", (I32, (16, 8), 0.5), WARP, "expected i32, got the float 0.5"),
        ("fragment", (F32, (16, 8), var("r", RegArray(F32, 4))), WARP, "fill must be a scalar"),
        ("row_vector", (F32, 16), WARPGROUP, "multiple of 64, got 16"),
        ("row_vector", (BF16, 64), WARPGROUP, "dtype must be one of f32, i32, u32, got bf16"),
        ("row_vector", (F32, 64, 0.0, 1), WARPGROUP, "partial must be True or False"),
        ("col_vector", (F32, 4), WARP, "multiple of 8, got 4"),
        ("registers", (BF16, 3), WARP, "length of a bf16 array must be a positive multiple of 2"),
        ("registers", (F32, 0), WARP, "positive multiple of 1, got 0"),
        ("registers", (F32, 300), WARP, "takes 300 registers"),
    ],
)  # fmt: skip
def test_wrong_constructions_are_refused(
    op: str, args: tuple[Any, ...], typing: FakeTyping, message: str
) -> None:
    with pytest.raises(Refused, match=message):
        make(op, *args, typing=typing)


def test_a_fill_reaches_every_register() -> None:
    unit = FakeUnit(values={"v": np.arange(128, dtype=np.float32)})
    assert (unit.run(make("fragment", F32, (64, 16), 2.5)) == np.float32(2.5)).all()
    each = unit.run(make("registers", F32, 3, var("v", Scalar(F32, True))))
    np.testing.assert_array_equal(each, np.repeat(np.arange(128)[:, None], 3, 1))
    packed = unit.run(make("fragment", BF16, (64, 16), 1.0))
    assert packed.shape == (128, 8)
    assert packed.dtype == numpy_dtype(BF16)


def test_without_a_fill_the_registers_hold_poison() -> None:
    unit = FakeUnit()
    call = make("row_vector", I32, 64)
    np.testing.assert_array_equal(unit.run(call), unit.uninitialised(call.type))


@pytest.mark.parametrize(
    ("dtype", "fill", "word"),
    [(F32, 0.0, "0x0u"), (BF16, 1.0, "0x3f803f80u"), (E4M3, 1.0, "0x38383838u"), (U32, 7, "7")],
)
def test_fills_are_emitted_by_the_word(dtype: DType, fill: float, word: str) -> None:
    text, _ = compiled(make("fragment", dtype, (64, 16), fill))
    assert f"[i] = {word}" in text or f"[i] = __uint_as_float({word})" in text
    assert f"i < {8 * dtype.bits // 32}" in text


def test_a_run_time_fill_of_16_bits_is_repeated() -> None:
    h = var("h", Scalar(BF16, True))
    text, _ = compiled(make("registers", BF16, 4, h))
    assert "(unsigned)(h) * 0x10001u" in text


# -- lanes -----------------------------------------------------------------------------------------


def test_lanes_alias_the_variable() -> None:
    acc = var("acc", Fragment(F32, (64, 16), "acc", 4))
    call = make("lanes", acc)
    assert call.type == RegArray(F32, 8)
    values = np.zeros((128, 8), np.float32)
    assert FakeUnit(values={"acc": values}).run(call) is values
    cg = FakeEmitter()
    assert cg.emit(call, "opened") == "acc"


def test_lanes_open_variables_only() -> None:
    acc = var("acc", Fragment(F32, (64, 16), "acc", 4))
    with pytest.raises(Refused, match="opens a variable"):
        make("lanes", make("add", acc, 1.0))
    with pytest.raises(Refused, match="opens a fragment or a row or column vector, got registers"):
        make("lanes", var("r", RegArray(F32, 8)))


# -- cols and rows ---------------------------------------------------------------------------------


def test_cols_and_rows_load_by_the_layout() -> None:
    data = np.arange(128, dtype=np.float32)
    unit = FakeUnit(smem={"Q": data})
    c = make("cols", vector(32, 64), typing=WITH_Q)
    np.testing.assert_array_equal(unit.run(c), 64 + col_coordinates(ColVector(F32, 32), 4))
    r = make("rows", vector(64, 3), typing=WITH_Q)
    np.testing.assert_array_equal(unit.run(r), 3 + row_coordinates(RowVector(F32, 64, 4)))


@pytest.mark.parametrize(
    ("op", "source", "message"),
    [
        ("cols", vector(12), "multiple of 8 elements, got 12"),
        ("cols", vector(16, 3), "offset of the source must be a multiple of 2, got 3"),
        ("cols", vector(16, 0, BF16), "must hold f32, i32 or u32, got bf16"),
        ("cols", vector(16, var("k", Scalar(I32, True))), "must be the same in all threads"),
        ("cols", view("Q", SmemView(F32, (4, 16), 0)), "must have rank 1, got rank 2"),
        ("cols", var("acc", Fragment(F32, (64, 16), "acc", 4)), "must be a shared-memory view"),
        ("rows", vector(32), "multiple of 64 elements, got 32"),
        ("cols", view("M", SmemView(F32, (8,), 0), offsets=[1, 0]), "rows of M have 9 elements"),
    ],
)
def test_wrong_sources_are_refused(op: str, source: Any, message: str) -> None:
    typing = FakeTyping(resources={"Q": Q, "M": buffer("M", F32, (4, 9))})
    with pytest.raises(Refused, match=message):
        make(op, source, typing=typing)


def test_an_odd_run_time_offset_is_a_finding() -> None:
    call = make("cols", vector(16, var("k", Scalar(I32))), typing=WITH_Q)
    unit = FakeUnit(smem={"Q": np.zeros(128, np.float32)}, values={"k": np.int32(3)})
    with pytest.raises(Finding, match="must be a multiple of 2") as caught:
        unit.run(call)
    assert caught.value.code == "CK591"


@pytest.mark.parametrize("dtype", [F32, I32, U32])
def test_vector_loads_compile(dtype: DType) -> None:
    resources: Any = {"Q": buffer("Q", dtype, (128,))}
    typing = FakeTyping(resources=resources)
    _, built = compiled(
        make("cols", vector(64, 0, dtype), typing=typing), target="sm_80", resources=resources
    )
    assert (built.ptx or "").count("ld.shared.v2") == 8
    _, built = compiled(make("rows", vector(64, 0, dtype), typing=typing), resources=resources)
    assert (built.ptx or "").count("ld.shared.") == 2


# -- indices ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("op", "threads", "expected", "varying"),
    [
        ("lane", 128, np.arange(128) % 32, True),
        ("warp", 128, np.arange(128) // 32, True),
        ("warp", 32, 0, False),
        ("thread", 32, np.arange(32), True),
        ("cta_rank", 128, 1, False),
    ],
)
def test_indices(op: str, threads: int, expected: Any, varying: bool) -> None:
    call = make(op, typing=FakeTyping(unit_threads=threads))
    assert call.type == Scalar(I32, varying)
    value = FakeUnit(threads=threads, block_rank=1).run(call)
    assert value.dtype == np.int32
    np.testing.assert_array_equal(value, expected)
    compiled(call, unit_threads=threads)
