"""Tensor maps: geometry against numpy's own indexing, limits, and the cache."""

import ctypes
import itertools
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.codegen.abi import TensorMapArg
from cake.runtime import driver, tensormap
from cake.runtime.arrays import ArrayView
from cake.runtime.tensormap import (
    QUANTUM,
    MapError,
    MapSpec,
    TensorMap,
    TensorMapCache,
    map_problems,
    map_spec,
)
from tests.runtime.fakes import FakeDriver

ADDRESS = 0x7F00_0000_0000


def view_of(array: np.ndarray[Any, Any], dtype: str = "f32") -> ArrayView:
    return ArrayView(
        pointer=ADDRESS,
        shape=array.shape,
        strides=tuple(stride // array.itemsize for stride in array.strides),
        dtype=dtype,
        device=0,
        readonly=False,
    )


def a_map(axes: tuple[int, ...], **changes: Any) -> TensorMapArg:
    box = (1,) * (len(axes) - 1) + (4,)
    return replace(TensorMapArg(tensor="x", box=box, axes=axes, dtype="f32"), **changes)


def read_through(spec: MapSpec, memory: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The view as the hardware addresses it: outermost axis first in the result."""
    extents = tuple(reversed(spec.extents))
    strides = (*reversed(spec.strides), memory.itemsize)
    found = np.empty(extents, memory.dtype)
    for index in itertools.product(*map(range, extents)):
        offset = sum(i * stride for i, stride in zip(index, strides, strict=True))
        found[index] = memory[offset // memory.itemsize]
    return found


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    padding=st.lists(st.integers(0, 1), min_size=4, max_size=4),
    kept=st.lists(st.booleans(), min_size=4, max_size=4),
    order=st.permutations(range(3)),
)
def test_a_map_reads_what_numpy_reads(
    shape: list[int], padding: list[int], kept: list[bool], order: list[int]
) -> None:
    shape[-1] *= 4
    rank = len(shape)
    padded = [extent + extra for extent, extra in zip(shape, padding, strict=False)]
    memory = np.arange(int(np.prod(padded)), dtype=np.float32)
    array = memory.reshape(padded)[tuple(slice(extent) for extent in shape)]
    outer = [axis for axis in range(rank - 1) if kept[axis]]
    outer = [outer[i] for i in order if i < len(outer)]  # any order of the outer axes
    arg = a_map((*outer, rank - 1))

    extents = []  # of the kept axes, each with the left-out axes before it
    folded = 1
    for axis in range(rank):
        folded *= shape[axis]
        if axis in arg.axes:
            extents.append(folded)
            folded = 1
    merged = array.reshape(extents)
    if not np.shares_memory(merged, memory):  # numpy cannot fold these axes either
        with pytest.raises(MapError, match="do not form one regular axis"):
            map_spec(arg, view_of(array), None)
        return
    order_of_view = [sorted(arg.axes).index(axis) for axis in arg.axes]
    spec = map_spec(arg, view_of(array), None)
    assert np.array_equal(read_through(spec, memory), merged.transpose(order_of_view))


def test_regular_axes_always_fold() -> None:
    array = np.zeros((3, 4, 5, 8), np.float32)
    spec = map_spec(a_map((2, 3)), view_of(array), None)
    assert (spec.extents, spec.strides) == ((8, 60), (32,))
    row_padded = np.zeros((3, 4, 12), np.float32)[:, :, :8]
    spec = map_spec(a_map((1, 2)), view_of(row_padded), None)
    assert (spec.extents, spec.strides) == ((8, 12), (48,))


@pytest.mark.parametrize("shape", [(1, 4, 8), (3, 1, 8), (1, 1, 8)])
def test_single_elements_fold_whatever_their_strides(shape: tuple[int, ...]) -> None:
    strides = tuple(99 if extent == 1 else 8 for extent in shape[:2])
    array = replace(view_of(np.zeros(shape, np.float32)), strides=(*strides, 1))
    spec = map_spec(a_map((1, 2)), array, None)
    assert spec.extents == (8, shape[0] * shape[1])
    assert spec.strides[0] == 32


def test_a_single_row_gets_a_stride_that_the_driver_accepts() -> None:
    spec = map_spec(a_map((0, 1)), view_of(np.zeros((1, 7), np.float32)), None)
    assert (spec.extents, spec.strides) == ((7, 1), (32,))
    assert list(map_problems(spec, ADDRESS)) == []


def test_dims_narrow_the_view_and_never_widen_it() -> None:
    array = view_of(np.zeros((16, 32), np.float32))
    arg = a_map((0, 1), dims=("M", "K"))
    assert map_spec(arg, array, (10, 32)).extents == (32, 10)
    with pytest.raises(MapError, match="has 17 elements along axis 0, of 16"):
        map_spec(arg, array, (17, 32))


def test_what_cannot_be_seen_through_a_map() -> None:
    array = np.zeros((16, 32), np.float32)
    with pytest.raises(MapError, match="the innermost stride must be 1"):
        map_spec(a_map((0, 1)), view_of(array.T), None)
    with pytest.raises(MapError, match="axis 1 of extent 32 is not in the view"):
        map_spec(a_map((0,)), view_of(array), None)


def test_an_array_without_elements_is_seen_as_a_single_one() -> None:
    spec = map_spec(a_map((0, 1)), view_of(np.zeros((0, 32), np.float32)), (0, 32))
    assert (spec.extents, spec.strides) == ((1, 1), (QUANTUM,))
    assert not list(map_problems(spec, 0))


def test_axes_may_be_seen_in_another_order() -> None:
    array = view_of(np.zeros((16, 32), np.float32).T)
    spec = map_spec(a_map((1, 0)), array, None)
    assert (spec.extents, spec.strides) == ((32, 16), (128,))


GOOD = MapSpec(
    dtype="bf16",
    extents=(4096, 1000),
    strides=(8192,),
    box=(64, 128),
    swizzle=128,
    l2_promotion=128,
    oob="zero",
)


@pytest.mark.parametrize(
    ("changes", "pointer", "problem"),
    [
        ({}, ADDRESS + 8, "the address 0x7f0000000008 is not a multiple of 16 bytes"),
        ({"extents": (4096, 0)}, ADDRESS, "an extent is 0; the limits are 1 and 2^32"),
        ({"extents": ((1 << 32) + 1, 1)}, ADDRESS, "an extent is 4294967297"),
        ({"strides": (8200,)}, ADDRESS, "a stride is 8200 bytes, which is not a multiple of 16"),
        ({"strides": (1 << 40,)}, ADDRESS, "it must be above 0 and below 2^40"),
        ({"strides": (0,)}, ADDRESS, "a stride is 0 bytes"),
        ({"box": (64, 257)}, ADDRESS, "the box has an extent of 257 elements"),
        ({"box": (64, 0)}, ADDRESS, "the box has an extent of 0 elements"),
        ({"box": (60, 8)}, ADDRESS, "the box is 120 bytes wide, which is not a multiple of 16"),
        ({"box": (128, 8)}, ADDRESS, "the box is 256 bytes wide; the 128-byte swizzle"),
        ({"box": (64, 8), "swizzle": 64}, ADDRESS, "128 bytes wide; the 64-byte swizzle"),
        (
            {"dtype": "i32", "box": (32, 8), "oob": "nan"},
            ADDRESS,
            "NaN cannot fill what lies outside a tensor of i32",
        ),
    ],
)
def test_each_limit_of_the_hardware(changes: dict[str, Any], pointer: int, problem: str) -> None:
    assert list(map_problems(GOOD, ADDRESS)) == []
    (found,) = map_problems(replace(GOOD, **changes), pointer)
    assert problem in found


def test_without_a_swizzle_the_box_may_be_wide() -> None:
    assert list(map_problems(replace(GOOD, box=(256, 8), swizzle=0), ADDRESS)) == []


@given(st.integers(0, 50))
def test_maps_are_aligned_and_hold_128_bytes(count: int) -> None:
    maps = [TensorMap() for _ in range(count)]
    assert all(each.address % 64 == 0 for each in maps)
    assert all(len(bytes(each)) == 128 for each in maps)
    addresses = sorted(each.address for each in maps)
    assert all(b - a >= 128 for a, b in itertools.pairwise(addresses))


def test_the_cache_encodes_once_and_drops_the_least_recently_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    encoded: list[tuple[MapSpec, int]] = []

    def encode(spec: MapSpec, pointer: int) -> TensorMap:
        encoded.append((spec, pointer))
        return TensorMap()

    monkeypatch.setattr(tensormap, "encode", encode)
    cache = TensorMapCache(capacity=2)
    other = replace(GOOD, box=(64, 64))
    first = cache.get(GOOD, ADDRESS)
    assert cache.get(replace(GOOD), ADDRESS) is first
    second = cache.get(other, ADDRESS)
    assert cache.get(GOOD, ADDRESS) is first
    cache.get(GOOD, ADDRESS + 256)  # drops `other`
    assert cache.get(GOOD, ADDRESS) is first
    assert cache.get(other, ADDRESS) is not second
    assert len(encoded) == 4
    assert len(cache) == 2


@pytest.mark.parametrize(
    "change",
    [
        {"dtype": "f16"},
        {"extents": (4096, 999)},
        {"strides": (8208,)},
        {"box": (64, 64)},
        {"swizzle": 0},
        {"l2_promotion": 0},
        {"oob": "nan"},
    ],
)
def test_specs_are_equal_by_all_their_content(change: dict[str, Any]) -> None:
    assert replace(GOOD) == GOOD
    assert hash(replace(GOOD)) == hash(GOOD)
    assert replace(GOOD, **change) != GOOD
    assert hash(replace(GOOD, **change)) != hash(GOOD)


def test_the_driver_gets_the_arguments_in_its_order(monkeypatch: pytest.MonkeyPatch) -> None:
    """cuTensorMapEncodeTiled(map, type, rank, address, dims, strides, box, element strides,
    interleave, swizzle, L2 promotion, out-of-bounds fill), as cuda.h declares it."""
    seen: list[Any] = []
    number, address = ctypes.c_int, ctypes.c_void_p
    words, longs = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)
    signature = ctypes.CFUNCTYPE(
        number,
        *(address, number, ctypes.c_uint32, address, longs, longs, words, words),
        *(number, number, number, number),
    )

    def encode_tiled(*arguments: Any) -> int:
        into, kind, rank, base, dims, strides, box, steps, *modes = arguments
        seen.append((kind, rank, base, dims[:rank], strides[: rank - 1], box[:rank], steps[:rank]))
        seen.append(modes)
        ctypes.memset(into, 0x5A, 128)
        return len(seen) // 4  # the second call fails with status 1

    library = SimpleNamespace(cuTensorMapEncodeTiled=signature(encode_tiled))
    monkeypatch.setattr(driver, "libcuda", lambda: library)
    monkeypatch.setattr(driver, "driver", lambda: FakeDriver(parameter_count=0))
    tensormap._entry_point.cache_clear()
    try:
        spec = replace(GOOD, extents=(64, 50, 3), strides=(256, 12800), box=(64, 8, 1), oob="nan")
        encoded = tensormap.encode(spec, ADDRESS)
        assert bytes(encoded) == b"\x5a" * 128
        assert seen == [
            (9, 3, ADDRESS, [64, 50, 3], [256, 12800], [64, 8, 1], [1, 1, 1]),
            [0, 3, 2, 1],
        ]
        with pytest.raises(driver.DriverError, match="CUDA_ERROR_INVALID_VALUE"):
            tensormap.encode(spec, ADDRESS)
    finally:
        tensormap._entry_point.cache_clear()
