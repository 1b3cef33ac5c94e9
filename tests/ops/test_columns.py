"""``columns``: slices of fragments are renamed registers, packed ones by the word."""

from typing import Any

import numpy as np
import pytest

from cake.ir.dtypes import BF16, E4M3, F32, DType
from cake.ir.fragments import coordinates
from cake.ir.types import Fragment
from cake.ops.values import from_matrix, to_matrix
from tests.ops.fakes import FakeEmitter, FakeTyping, FakeUnit, Refused, make, var

WARP = FakeTyping(unit_threads=32)


def whole(dtype: DType, shape: tuple[int, int], layout: Any = "acc") -> Any:
    return var("w", Fragment(dtype, shape, layout, 1))


@pytest.mark.parametrize(
    ("fragment", "start", "count", "message"),
    [
        (whole(E4M3, (16, 64)), 0, 16, "slices 16- and 32-bit fragments of the acc layout"),
        (whole(BF16, (16, 64), "b"), 0, 16, "of the acc layout"),
        (whole(F32, (16, 64)), 4, 8, "multiples of 8, got 4 and 8"),
        (whole(F32, (16, 64)), 0, 12, "multiples of 8, got 0 and 12"),
        (whole(F32, (16, 64)), 64, 8, r"start must be in \[0, 56\], got 64"),
        (whole(F32, (16, 64)), 32, 40, r"count must be in \[8, 32\], got 40"),
    ],
)
def test_wrong_slices_are_refused(fragment: Any, start: int, count: int, message: str) -> None:
    with pytest.raises(Refused, match=message):
        make("columns", fragment, start, count, typing=WARP)


@pytest.mark.parametrize("dtype", [F32, BF16])
@pytest.mark.parametrize(("start", "count"), [(0, 64), (16, 16), (40, 24), (56, 8)])
def test_a_slice_is_a_slice_of_the_matrix(dtype: DType, start: int, count: int) -> None:
    t = Fragment(dtype, (32, 64), "acc", 1)
    matrix = np.arange(32 * 64, dtype=np.float32).reshape(32, 64) % 251
    call = make("columns", whole(dtype, (32, 64)), start, count, typing=WARP)
    part = call.type
    assert part == Fragment(dtype, (32, count), "acc", 1)
    got = FakeUnit(threads=32, values={"w": from_matrix(t, matrix)}).run(call)
    np.testing.assert_array_equal(to_matrix(part, got), matrix[:, start : start + count])


@pytest.mark.parametrize(("dtype", "per"), [(F32, 1), (BF16, 2)])
@pytest.mark.parametrize("rows", [16, 32])
def test_emitted_words_hold_the_columns_of_the_slice(dtype: DType, per: int, rows: int) -> None:
    """One row of atoms is a run of registers; several are copied one by one."""
    start, count = 16, 24
    call = make("columns", whole(dtype, (rows, 64)), start, count, typing=WARP)
    cg = FakeEmitter()
    cg.emit(call, "part")
    copied = {}
    for line in cg.lines:
        target, _, source = line.rstrip(";").partition(" = ")
        if target == "part[i]":
            first = int(source.removeprefix("w[").removesuffix(" + i]"))
            copied = {i: first + i for i in range(rows * count // 32 // per)}
        elif target.startswith("part["):
            copied[int(target[5:-1])] = int(source[2:-1])
    assert len(copied) == rows * count // 32 // per
    part, full = call.type, Fragment(dtype, (rows, 64), "acc", 1)
    assert isinstance(part, Fragment)
    (row, col), (full_row, full_col) = coordinates(part), coordinates(full)
    for to, source_word in copied.items():
        for k in range(per):
            r, source_r = to * per + k, source_word * per + k
            np.testing.assert_array_equal(row[:, r], full_row[:, source_r])
            np.testing.assert_array_equal(col[:, r] + start, full_col[:, source_r])
