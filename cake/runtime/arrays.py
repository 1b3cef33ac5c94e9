"""Arrays of any library, read without a copy and without importing the library.

Three ways lead in, tried in this order for each type once:

* ``data_ptr()``, ``shape``, ``stride()``, ``dtype``, ``get_device()``: torch, about 1 us;
* ``__cuda_array_interface__`` (version 2 or 3): CuPy, Numba and others;
* ``__dlpack__``: everything else (JAX), about 20 us.

An adapter's :meth:`~Adapter.read` gives the address and a hashable *layout*: a launch looks up its
plan by layouts and turns an array into an :class:`ArrayView` only when it has no plan yet.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Protocol

from cake.runtime import driver

HOST = -1
# The device of an array without elements, which has no address that the driver could know.
ANYWHERE = -2

_DTYPE_NAMES = {
    "bfloat16": "bf16",
    "float16": "f16",
    "float32": "f32",
    "float64": "f64",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
    "int8": "i8",
    "uint8": "u8",
    "uint16": "u16",
    "int32": "i32",
    "uint32": "u32",
    "int64": "i64",
    "bool": "bool",
}
_TYPE_STRINGS = {
    "<f2": "f16",
    "<f4": "f32",
    "<f8": "f64",
    "|i1": "i8",
    "|u1": "u8",
    "<u2": "u16",
    "<i4": "i32",
    "<u4": "u32",
    "<i8": "i64",
    "|b1": "bool",
}

_DLPACK_CUDA = (2, 13)  # kDLCUDA, kDLCUDAManaged (dlpack.h)


class ArrayError(TypeError):
    """An object cannot be read as an array on a GPU."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArrayView:
    """What a launch needs to know of an array.

    ``strides`` are in elements. ``dtype`` is a name of :data:`cake.ir.dtypes.DTYPES`, or the
    library's own name where there is none. ``device`` is the GPU's ordinal, :data:`HOST` or
    :data:`ANYWHERE`.
    """

    pointer: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: str
    device: int
    readonly: bool


class Adapter(Protocol):
    """How arrays of one type are read."""

    def read(self, array: Any) -> tuple[int, Hashable]:
        """Address of the first element, and the layout: equal for arrays that differ in the
        address only."""

    def view(self, array: Any) -> ArrayView:
        """Everything about the array; raises :class:`ArrayError`."""

    def current_stream(self, array: Any, device: int) -> int | None:
        """Handle of the stream that the array's library works on now; None if it does not say."""


def dtype_name(dtype: object) -> str:
    """The name of a torch, numpy or ml_dtypes element type; unknown ones keep their own."""
    own = str(dtype).removeprefix("torch.")
    return _DTYPE_NAMES.get(own, own)


class TorchAdapter:
    """torch tensors, and whatever has the same five members."""

    def read(self, array: Any) -> tuple[int, Hashable]:
        layout = (array.shape, array.stride(), array.dtype, array.get_device())
        return array.data_ptr(), layout

    def view(self, array: Any) -> ArrayView:
        return ArrayView(
            pointer=array.data_ptr(),
            shape=tuple(array.shape),
            strides=tuple(array.stride()),
            dtype=dtype_name(array.dtype),
            device=array.get_device(),
            readonly=False,
        )

    def current_stream(self, array: Any, device: int) -> int | None:
        torch = sys.modules.get("torch")
        if torch is None or not isinstance(array, torch.Tensor):
            return None
        # The public way builds a Stream object, which takes ten times as long.
        raw = getattr(torch._C, "_cuda_getCurrentRawStream", None)
        if raw is not None:
            return int(raw(device))
        return int(torch.cuda.current_stream(device).cuda_stream)


class CudaArrayInterfaceAdapter:
    """``__cuda_array_interface__``; ``pointer_device`` tells which GPU an address belongs to."""

    def __init__(self, pointer_device: Callable[[int], int | None]) -> None:
        self._pointer_device = pointer_device

    def read(self, array: Any) -> tuple[int, Hashable]:
        interface = self._interface(array)
        pointer, readonly = interface["data"]
        pointer = int(pointer or 0)
        layout = (
            interface["shape"],
            interface.get("strides"),
            interface["typestr"],
            self._device(pointer),
            readonly,
        )
        return pointer, layout

    def view(self, array: Any) -> ArrayView:
        interface = self._interface(array)
        if interface.get("mask") is not None:
            raise ArrayError("it has a mask")
        pointer, readonly = interface["data"]
        pointer = int(pointer or 0)
        shape = tuple(map(int, interface["shape"]))
        dtype, item_bytes = self._element(array, interface["typestr"])
        return ArrayView(
            pointer=pointer,
            shape=shape,
            strides=_element_strides(shape, interface.get("strides"), item_bytes),
            dtype=dtype,
            device=self._device(pointer),
            readonly=bool(readonly),
        )

    def current_stream(self, array: Any, device: int) -> int | None:
        cupy = sys.modules.get("cupy")
        if cupy is not None and isinstance(array, cupy.ndarray):
            return int(cupy.cuda.get_current_stream(device).ptr)
        stream = self._interface(array).get("stream")
        return None if stream is None else int(stream)

    def _interface(self, array: Any) -> dict[str, Any]:
        try:
            interface: dict[str, Any] = array.__cuda_array_interface__
        except (AttributeError, RuntimeError) as error:  # not on a GPU, says the library
            raise ArrayError(f"it has no __cuda_array_interface__: {error}") from error
        return interface

    def _device(self, pointer: int) -> int:
        if not pointer:
            return ANYWHERE
        ordinal = self._pointer_device(pointer)
        return HOST if ordinal is None else ordinal

    def _element(self, array: Any, typestr: str) -> tuple[str, int]:
        item_bytes = int(typestr[2:])
        if typestr in _TYPE_STRINGS:
            return _TYPE_STRINGS[typestr], item_bytes
        # bfloat16 and fp8 have no type string of their own; numpy calls them void.
        return dtype_name(getattr(array, "dtype", typestr)), item_bytes


class DLPackAdapter:
    """``__dlpack__``, through cuda.core."""

    def read(self, array: Any) -> tuple[int, Hashable]:
        view = self.view(array)
        layout = (view.shape, view.strides, view.dtype, view.device, view.readonly)
        return view.pointer, layout

    def view(self, array: Any) -> ArrayView:
        kind, _ = array.__dlpack_device__()
        if int(kind) not in _DLPACK_CUDA:
            raise ArrayError("it is not in the memory of a GPU; move it there")
        driver.driver()  # cuda.core without a driver can leave a lock held
        from cuda.core.utils import StridedMemoryView

        try:
            view = StridedMemoryView.from_dlpack(array, stream_ptr=-1)
        except (BufferError, NotImplementedError, TypeError, RuntimeError) as error:
            raise ArrayError(f"its DLPack export failed: {error}") from error
        shape = tuple(view.shape)
        strides = view.strides
        return ArrayView(
            pointer=view.ptr,
            shape=shape,
            strides=_row_major(shape) if strides is None else tuple(strides),
            dtype=dtype_name(view.dtype),
            device=view.device_id,
            readonly=view.readonly,
        )

    def current_stream(self, array: Any, device: int) -> int | None:
        return None


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = []
    step = 1
    for extent in reversed(shape):
        strides.append(step)
        step *= extent
    return tuple(reversed(strides))


def _element_strides(
    shape: tuple[int, ...], byte_strides: tuple[int, ...] | None, item_bytes: int
) -> tuple[int, ...]:
    if byte_strides is None:
        return _row_major(shape)
    if any(stride % item_bytes for stride in byte_strides):
        raise ArrayError(
            f"its byte strides {tuple(byte_strides)} are not multiples of the element's "
            f"{item_bytes} bytes"
        )
    return tuple(int(stride) // item_bytes for stride in byte_strides)


_ADAPTERS: dict[type, Adapter] = {}
_TORCH = TorchAdapter()
_CUDA_ARRAY_INTERFACE = CudaArrayInterfaceAdapter(driver.pointer_device)
_DLPACK = DLPackAdapter()


def adapter_of(array: object) -> Adapter:
    """The adapter for arrays of this type; raises :class:`ArrayError` if there is none."""
    kind = type(array)
    found = _ADAPTERS.get(kind)
    if found is None:
        found = _ADAPTERS[kind] = _choose(kind, array)
    return found


def _choose(kind: type, array: object) -> Adapter:
    if all(hasattr(kind, name) for name in ("data_ptr", "stride", "get_device")):
        return _TORCH
    # The attribute is looked for on the object: Numba and test doubles set it there, and torch
    # raises from it for tensors in host memory.
    if hasattr(array, "__cuda_array_interface__"):
        return _CUDA_ARRAY_INTERFACE
    if hasattr(kind, "__dlpack__") and hasattr(kind, "__dlpack_device__"):
        return _DLPACK
    raise ArrayError(
        f"a {kind.__module__}.{kind.__qualname__} has neither data_ptr/stride/get_device, "
        "nor __cuda_array_interface__, nor __dlpack__"
    )
