"""Cells and boxes against plain sets of elements."""

from __future__ import annotations

from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest

from cake.ir.dtypes import BF16, F32
from cake.verify.phase.events import Region
from cake.verify.phase.regions import (
    box_cells,
    clipped,
    covers,
    linear,
    listed_cells,
    overlap,
    points_box,
    pooled_cells,
    united,
)


def cells(numbers: set[int]) -> int:
    return sum(1 << n for n in numbers)


@pytest.mark.parametrize("seed", range(60))
def test_a_box_of_a_block_is_its_elements(seed: int) -> None:
    r = Random(seed)
    shape = tuple(r.randrange(1, 6) for _ in range(r.choice([1, 2, 3])))
    offsets = tuple(r.randrange(-1, n + 1) for n in shape)
    extents = tuple(r.randrange(0, n + 2) for n in shape)
    index = np.arange(prod(shape)).reshape(shape)
    inside = {
        int(index[at])
        for at in product(*map(range, shape))
        if all(o <= a < o + e for a, o, e in zip(at, offsets, extents, strict=True))
    }
    assert box_cells(shape, offsets, extents) == cells(inside)


def test_listed_cells_leave_out_what_lies_outside() -> None:
    coordinates = [np.array([0, 1, 2, -1, 0]), np.array([3, 0, 1, 1, 4])]
    numbers = linear((3, 4), coordinates)
    assert numbers.tolist() == [3, 4, 9, -1, -1]
    assert listed_cells(12, numbers) == cells({3, 4, 9})


def test_pooled_cells_are_bytes() -> None:
    """Row 1 of a 2 x 4 tile of 16-bit elements that starts at byte 10 of its pool."""
    row = box_cells((2, 4), (1, 0), (1, 4))
    assert pooled_cells((2, 4), 0, BF16, 10, 64, row) == cells(set(range(18, 26)))
    all_rows = box_cells((8, 32), (0, 0), (8, 32))
    swizzled = pooled_cells((8, 32), 128, F32, 0, 1024, all_rows)
    assert swizzled == (1 << 1024) - 1


def test_points_make_an_exact_box_if_they_fill_it() -> None:
    lane = np.arange(32)
    assert points_box([3, lane * 4], (1, 4)) == Region(((3, 4), (0, 128)), exact=True)
    assert points_box([lane % 2, lane // 2], (1, 1)) == Region(((0, 2), (0, 16)), exact=True)
    strided = points_box([3, lane * 4], (1, 2))
    assert strided == Region(((3, 4), (0, 126)), exact=False)


def test_a_box_is_clipped_at_the_tensor() -> None:
    assert clipped(Region(((-2, 3), (0, 9))), (2, 8)) == Region(((0, 2), (0, 8)))
    assert clipped(Region(((4, 6), (0, 9))), (2, 8)) is None
    assert clipped(Region(((4, 6),)), (None,)) == Region(((4, 6),))


A, B, C = Region(0b0011), Region(0b0110), Region(0b1100)
SOMEWHERE = Region(0b0011, exact=False)
ROW, COLUMN, FAR = Region(((0, 1), (0, 8))), Region(((0, 4), (2, 3))), Region(((2, 4), (4, 8)))


@pytest.mark.parametrize(
    ("a", "b", "meet"),
    [
        (A, B, "yes"),
        (A, C, "no"),
        (SOMEWHERE, A, "yes"),
        (SOMEWHERE, Region(0b0111), "yes"),
        (SOMEWHERE, B, "maybe"),
        (SOMEWHERE, SOMEWHERE, "maybe"),
        (SOMEWHERE, C, "no"),
        (ROW, COLUMN, "yes"),
        (ROW, FAR, "no"),
        (Region(ROW.cells, exact=False), COLUMN, "maybe"),
        (Region(((0, 1), (2, 3)), exact=False), COLUMN, "yes"),
    ],
)
def test_regions_meet_for_certain_or_by_data(a: Region, b: Region, meet: str) -> None:
    assert overlap(a, b) == meet
    assert overlap(b, a) == meet


def test_only_an_exact_region_covers_another() -> None:
    assert covers(Region(0b0111), SOMEWHERE)
    assert not covers(Region(0b0111, exact=False), A)
    assert not covers(A, B)
    assert covers(COLUMN, Region(((1, 2), (2, 3))))
    assert not covers(COLUMN, ROW)


def test_regions_are_united_where_that_says_the_same() -> None:
    assert united(A, B) == Region(0b0111)
    assert united(SOMEWHERE, SOMEWHERE) == SOMEWHERE
    assert united(SOMEWHERE, A) is None
    assert united(ROW, ROW) == ROW
    assert united(ROW, COLUMN) is None
