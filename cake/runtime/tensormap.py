"""Tensor maps: the 128-byte descriptors through which TMA reads and writes tensors.

Geometry is checked here first, with the value and the limit in each message; what remains for the
driver is the encoding. Maps are cached by content. All tuples are innermost axis first, as the
driver takes them. (CUDA driver API, cuTensorMapEncodeTiled.)
"""

from __future__ import annotations

import ctypes
import threading
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from cake.codegen.abi import TensorMapArg
from cake.ir.dtypes import DTYPES
from cake.runtime import driver
from cake.runtime.arrays import ArrayView

MAP_BYTES = 128
_MAP_ALIGNMENT = 64
QUANTUM = 16  # bytes: base address, strides and the box's innermost extent are multiples of it
_MAX_EXTENT = 1 << 32
_MAX_STRIDE = 1 << 40
_MAX_BOX = 256
NOTHING_BYTES = 16
"""Zeroed memory behind the map of an array without elements: its one element reads as zero, as
all that lies outside does, and nobody looks at what is written there."""

_DATA_TYPES = {
    "bf16": "BFLOAT16",
    "f16": "FLOAT16",
    "f32": "FLOAT32",
    "tf32": "TFLOAT32",
    "f64": "FLOAT64",
    "e4m3": "UINT8",
    "e5m2": "UINT8",
    "i8": "UINT8",
    "u8": "UINT8",
    "bool": "UINT8",
    "u16": "UINT16",
    "i32": "INT32",
    "u32": "UINT32",
    "i64": "INT64",
}
_SWIZZLES = {0: "NONE", 32: "32B", 64: "64B", 128: "128B"}
_PROMOTIONS = {0: "NONE", 64: "L2_64B", 128: "L2_128B", 256: "L2_256B"}
_FILLS = {"zero": "NONE", "nan": "NAN_REQUEST_ZERO_FMA"}


class MapError(ValueError):
    """An array cannot be seen through a tensor map."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MapSpec:
    """All of a tensor map but its base address.

    ``strides`` are in bytes, without that of the innermost axis; ``box`` is in elements.
    """

    dtype: str
    extents: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: int
    l2_promotion: int
    oob: str
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Every launch looks maps up by their spec.
        parts = (self.dtype, self.extents, self.strides, self.box, self.swizzle, self.l2_promotion)
        object.__setattr__(self, "_hash", hash((*parts, self.oob)))

    def __hash__(self) -> int:
        return self._hash


def map_spec(arg: TensorMapArg, array: ArrayView, dims: Sequence[int] | None) -> MapSpec:
    """The geometry of ``arg`` over ``array``; ``dims`` are the values of ``arg.dims``.

    For an array without elements, which a map cannot describe, it is that of a single one, see
    :data:`NOTHING_BYTES`. Raises :class:`MapError` if left-out axes do not fold into their
    neighbours, if the innermost stride is not 1, or if ``dims`` reach beyond the array.
    """
    if 0 in array.shape:
        rank = len(arg.axes)
        return _spec(arg, (1,) * rank, (QUANTUM,) * (rank - 1))
    folded = {axis: _fold(arg, array, axis) for axis in arg.axes}
    _check_left_out(arg, array)
    axes = tuple(reversed(arg.axes))
    extents = [folded[axis][0] for axis in axes]
    if dims is not None:
        wanted = tuple(reversed(dims))
        for axis, extent, limit in zip(axes, wanted, extents, strict=True):
            if extent > limit:
                raise MapError(f"its view has {extent} elements along axis {axis}, of {limit}")
        extents = list(wanted)
    inner_stride = folded[axes[0]][1]
    if inner_stride != 1 and extents[0] > 1:
        raise MapError(f"axis {axes[0]} has stride {inner_stride}; the innermost stride must be 1")
    item_bytes = DTYPES[arg.dtype].bytes
    strides: list[int] = []
    packed = extents[0] * item_bytes
    for axis, extent in zip(axes[1:], extents[1:], strict=True):
        # The stride of a single element is never used, and libraries put any number there.
        stride = folded[axis][1] * item_bytes if extent > 1 else -(-packed // QUANTUM) * QUANTUM
        strides.append(stride)
        packed = extent * stride
    return _spec(arg, tuple(extents), tuple(strides))


def _spec(arg: TensorMapArg, extents: tuple[int, ...], strides: tuple[int, ...]) -> MapSpec:
    return MapSpec(
        dtype=arg.dtype,
        extents=extents,
        strides=strides,
        box=tuple(reversed(arg.box)),
        swizzle=arg.swizzle,
        l2_promotion=arg.l2_promotion,
        oob=arg.oob,
    )


def _fold(arg: TensorMapArg, array: ArrayView, axis: int) -> tuple[int, int]:
    """Extent and stride of a kept axis with the left-out axes to its left."""
    extent, stride = array.shape[axis], array.strides[axis]
    for left in range(axis - 1, -1, -1):
        if left in arg.axes:
            break
        left_extent, left_stride = array.shape[left], array.strides[left]
        if left_extent == 1:
            continue
        if extent == 1:
            extent, stride = left_extent, left_stride
        elif left_stride == extent * stride:
            extent *= left_extent
        else:
            raise MapError(
                f"axes {left} and {axis} do not form one regular axis: axis {left} has stride "
                f"{left_stride} instead of {extent * stride}"
            )
    return extent, stride


def _check_left_out(arg: TensorMapArg, array: ArrayView) -> None:
    last = max(arg.axes)
    for axis in range(last + 1, len(array.shape)):
        if array.shape[axis] != 1:
            raise MapError(f"axis {axis} of extent {array.shape[axis]} is not in the view")


def map_problems(spec: MapSpec, pointer: int) -> Iterator[str]:
    """Every limit of the hardware that a map at address ``pointer`` breaks, one text each."""
    if pointer % QUANTUM:
        yield f"the address {pointer:#x} is not a multiple of {QUANTUM} bytes"
    for extent in spec.extents:
        if not 1 <= extent <= _MAX_EXTENT:
            yield f"an extent is {extent}; the limits are 1 and 2^32"
    for extent, stride in zip(spec.extents[1:], spec.strides, strict=True):
        if stride % QUANTUM:
            yield f"a stride is {stride} bytes, which is not a multiple of {QUANTUM}"
        if not 0 < stride < _MAX_STRIDE and extent > 1:
            yield f"a stride is {stride} bytes; it must be above 0 and below 2^40"
    yield from _box_problems(spec)


def _box_problems(spec: MapSpec) -> Iterator[str]:
    for extent in spec.box:
        if not 1 <= extent <= _MAX_BOX:
            yield f"the box has an extent of {extent} elements; the limits are 1 and {_MAX_BOX}"
    inner_bytes = spec.box[0] * DTYPES[spec.dtype].bytes
    if inner_bytes % QUANTUM:
        yield f"the box is {inner_bytes} bytes wide, which is not a multiple of {QUANTUM}"
    if spec.swizzle and inner_bytes > spec.swizzle:
        yield f"the box is {inner_bytes} bytes wide; the {spec.swizzle}-byte swizzle allows no more"
    if spec.oob == "nan" and not DTYPES[spec.dtype].is_float:
        yield f"NaN cannot fill what lies outside a tensor of {spec.dtype}"


class TensorMap:
    """An encoded map; ``address`` is where its 128 bytes lie in host memory."""

    __slots__ = ("_storage", "address")

    def __init__(self) -> None:
        self._storage = (ctypes.c_uint8 * (MAP_BYTES + _MAP_ALIGNMENT - 1))()
        start = ctypes.addressof(self._storage)
        self.address = -(-start // _MAP_ALIGNMENT) * _MAP_ALIGNMENT

    def __bytes__(self) -> bytes:
        return ctypes.string_at(self.address, MAP_BYTES)


def encode(spec: MapSpec, pointer: int) -> TensorMap:
    """Encode a map for the tensor at ``pointer``; the GPU's context must be current.

    The driver writes into a buffer of ours: the one that cuda.bindings offers is not aligned to 64
    bytes. Raises :class:`cake.runtime.driver.DriverError` for what the checks here do not know.
    """
    call, constant = _entry_point()
    rank = len(spec.extents)
    encoded = TensorMap()
    status = call(
        encoded.address,
        constant("CUtensorMapDataType", "DATA_TYPE", _DATA_TYPES[spec.dtype]),
        rank,
        pointer,
        (ctypes.c_uint64 * rank)(*spec.extents),
        (ctypes.c_uint64 * max(rank - 1, 1))(*spec.strides),
        (ctypes.c_uint32 * rank)(*spec.box),
        (ctypes.c_uint32 * rank)(*[1] * rank),  # element strides
        constant("CUtensorMapInterleave", "INTERLEAVE", "NONE"),
        constant("CUtensorMapSwizzle", "SWIZZLE", _SWIZZLES[spec.swizzle]),
        constant("CUtensorMapL2promotion", "L2_PROMOTION", _PROMOTIONS[spec.l2_promotion]),
        constant("CUtensorMapFloatOOBfill", "FLOAT_OOB_FILL", _FILLS[spec.oob]),
    )
    if status:
        error = driver.driver().CUresult(status)
        raise driver.driver_error(error, f"cuTensorMapEncodeTiled of {spec} at {pointer:#x}")
    return encoded


@cache
def _entry_point() -> tuple[Any, Any]:
    cu = driver.driver()
    call = driver.libcuda().cuTensorMapEncodeTiled
    words, longs = ctypes.POINTER(ctypes.c_uint32), ctypes.POINTER(ctypes.c_uint64)
    number, address = ctypes.c_int, ctypes.c_void_p
    call.argtypes = [address, number, ctypes.c_uint32, address, longs, longs, words, words]
    call.argtypes += [number] * 4
    call.restype = number

    def constant(enum: str, group: str, name: str) -> int:
        return int(getattr(getattr(cu, enum), f"CU_TENSOR_MAP_{group}_{name}"))

    return call, constant


class TensorMapCache:
    """Encoded maps by content, the least recently used dropped beyond ``capacity``.

    A map holds an address, not the memory: a map for a freed and reused address is still right.
    """

    def __init__(self, capacity: int = 4096) -> None:
        self._capacity = capacity
        self._maps: OrderedDict[tuple[int, MapSpec], TensorMap] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, spec: MapSpec, pointer: int) -> TensorMap:
        """The map of ``spec`` at ``pointer``, encoded if it is new.

        The caller keeps the object while the driver may read it.
        """
        key = (pointer, spec)
        with self._lock:
            found = self._maps.get(key)
            if found is not None:
                self._maps.move_to_end(key)
                return found
            found = self._maps[key] = encode(spec, pointer)
            if len(self._maps) > self._capacity:
                self._maps.popitem(last=False)
            return found

    def __len__(self) -> int:
        return len(self._maps)
