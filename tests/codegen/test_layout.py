"""Shared memory: swizzled offsets against a model, placement of a program's buffers."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from cake.ir.dtypes import BF16, E4M3, F32, DType
from cake.lang.elaborate import parse
from cake.ops.layout import smem_layout, swizzle_period, tile_offsets


def tma_offset(row: int, column: int, rows: int, width: int) -> int:
    """Byte (row, column) of a tile as the PTX ISA draws the swizzling modes."""
    block, within = divmod(column, width)
    chunk, byte = divmod(within, 16)
    line = (row * width + within) // 128  # lines of 128 bytes repeat after eight
    flip = {128: line % 8, 64: line % 4, 32: line % 2}[width]
    return block * rows * width + row * width + (chunk ^ flip) * 16 + byte


@pytest.mark.parametrize("width", [32, 64, 128])
@pytest.mark.parametrize(
    ("dtype", "shape"), [(BF16, (64, 64)), (BF16, (16, 128)), (F32, (8, 32)), (E4M3, (32, 128))]
)
def test_swizzled_tile_follows_the_manual(dtype: DType, shape: tuple[int, int], width: int) -> None:
    offsets = tile_offsets(shape, width, dtype)
    rows, columns = shape
    for row in range(rows):
        for column in range(0, columns, 3):
            expected = tma_offset(row, column * dtype.bytes, rows, width)
            assert offsets[row, column] == expected, (row, column)


@pytest.mark.parametrize("width", [0, 32, 64, 128])
def test_every_byte_of_a_tile_is_used_once(width: int) -> None:
    offsets = tile_offsets((3, 8, 64), width, BF16)
    assert offsets.shape == (3, 8, 64)
    assert sorted(offsets.ravel()) == list(range(0, 3 * 8 * 64 * 2, 2))


def test_rows_must_fill_blocks() -> None:
    with pytest.raises(ValueError, match="192 bytes do not fill blocks of 128"):
        tile_offsets((8, 96), 128, BF16)


def test_offsets_are_read_only() -> None:
    with pytest.raises(ValueError, match="read-only"):
        tile_offsets((8, 8), 0, F32)[0, 0] = 1


def test_block_starts_on_a_period_keep_rows_alike() -> None:
    offsets = tile_offsets((16, 64), 128, BF16)
    assert np.array_equal(offsets[8:] - offsets[:8], np.full((8, 64), swizzle_period(128)))


SOURCE = """
@cake.schedule(target="sm_90a")
def k(x: Tensor[bf16, "M", 64], q: Tensor[f32, "M"], y: Tensor[f32, "M"]):
    Q = smem(f32, (24,), stages=2)
    S = smem(f32, (5,))
    X = smem(bf16, (8, 64), stages=3, swizzle=128)
    P = pool(4096)
    V = smem(bf16, (8, 64), swizzle=128, pool=P, offset=1024)
    W = smem(f32, (16,), pool=P, offset=64)
    done = barrier(slots=2, arrivals=1)
    load = role(warps=1)
    math = role(warps=1)
    xs = pipeline(X, producer=load, consumer=math)
    with load:
        for m in range(4):
            with xs.fill() as s:
                tma_load(X[s], x[m * 8, 0])
    with math:
        for m in range(4):
            with xs.use() as s:
                v = load(X[s][0, 0])
"""


def test_placement_aligns_and_keeps_buffers_apart() -> None:
    layout = smem_layout(parse(SOURCE).program())
    assert layout.alignment == 1024
    assert layout.buffers["X"].offset % 1024 == 0
    assert layout.buffers["X"].stage_bytes == 1024
    assert layout.buffers["V"].offset == layout.pools["P"] + 1024
    assert layout.buffers["V"].offset % 1024 == 0
    assert layout.buffers["W"].offset == layout.pools["P"] + 64
    assert layout.buffers["Q"].stage_bytes == 96
    assert layout.buffers["S"].offset % 16 == 0
    barriers = [
        *(layout.full["xs"] + 8 * i for i in range(3)),
        *(layout.empty["xs"] + 8 * i for i in range(3)),
        *(layout.barriers["done"] + 8 * i for i in range(2)),
    ]
    spans = [(b, b + 8) for b in barriers]
    spans += [(layout.pools["P"], layout.pools["P"] + 4096)]
    for place in (layout.buffers[name] for name in ("Q", "S", "X")):
        spans.append((place.offset, place.offset + place.bytes))
    spans.sort()
    assert all(a[1] <= b[0] for a, b in pairwise(spans))
    assert spans[-1][1] == layout.bytes


def test_bulk_destinations_are_aligned_to_128_bytes() -> None:
    source = SOURCE.replace("pipeline(X,", "pipeline(X, T,")
    source = source.replace("    done", "    T = smem(f32, (24,), stages=3)\n    done", 1)
    copy = "tma_load(X[s], x[m * 8, 0])"
    source = source.replace(copy, f"{copy}\n                bulk_load(T[s], q[m * 24])")
    layout = smem_layout(parse(source).program())
    assert layout.buffers["T"].offset % 128 == 0
    assert layout.buffers["T"].stage_bytes == 128
