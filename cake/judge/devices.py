"""Memory and clocks of the device that a candidate runs on, behind one small interface."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Bytes = NDArray[np.uint8]
ALIGNMENT = 256  # bytes, as cudaMalloc gives at least (CUDA C++ Programming Guide)


class Memory(Protocol):
    """Byte buffers, which are opaque, and arrays over them."""

    def allocate(self, size: int) -> Any:
        """A new buffer of ``size`` bytes, aligned to 256."""

    def array(
        self, buffer: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Any:
        """A contiguous array over ``buffer`` from byte ``offset`` on."""

    def fill(self, buffer: Any, start: int, stop: int, byte: int) -> None:
        """Set the bytes from ``start`` to ``stop``."""

    def upload(self, buffer: Any, start: int, data: Bytes) -> None:
        """Copy ``data`` from the host to ``buffer`` from ``start`` on."""

    def download(self, buffer: Any, start: int, stop: int) -> Bytes:
        """A host copy of the bytes from ``start`` to ``stop``."""

    def copy(self, source: Any, target: Any, start: int, size: int) -> None:
        """Copy the first ``size`` bytes of ``source`` into ``target`` from ``start`` on."""


class Device(Memory, Protocol):
    """Memory with a clock."""

    clock: str

    def synchronize(self) -> None:
        """Wait until the device has finished."""

    def measure(
        self, call: Callable[[], object], host_seconds: float, *, cold: bool = True
    ) -> float:
        """Milliseconds of device time for ``call``, on an empty L2 if ``cold``. ``host_seconds``
        is what the host needs to enqueue it: the device is kept busy for so long before."""

    def graph(self, call: Callable[[], object]) -> Callable[[], object] | None:
        """``call`` as a CUDA graph, None where it cannot be captured."""

    def environment(self) -> dict[str, str]:
        """What is known about the device and its software."""


class HostDevice:
    """The CPU: numpy arrays, and the host's clock."""

    clock = "host clock"

    def allocate(self, size: int) -> Bytes:
        raw = np.empty(size + ALIGNMENT, dtype=np.uint8)
        start = -raw.ctypes.data % ALIGNMENT
        return raw[start : start + size]

    def array(
        self, buffer: Bytes, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Any:
        size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
        return buffer[offset : offset + size].view(dtype).reshape(shape)

    def fill(self, buffer: Bytes, start: int, stop: int, byte: int) -> None:
        buffer[start:stop] = byte

    def upload(self, buffer: Bytes, start: int, data: Bytes) -> None:
        buffer[start : start + data.size] = data

    def download(self, buffer: Bytes, start: int, stop: int) -> Bytes:
        return buffer[start:stop].copy()

    def copy(self, source: Bytes, target: Bytes, start: int, size: int) -> None:
        target[start : start + size] = source[:size]

    def synchronize(self) -> None:
        """Calls on the host have finished when they return."""

    def graph(self, call: Callable[[], object]) -> None:
        """The host has no graphs."""

    def measure(
        self, call: Callable[[], object], host_seconds: float, *, cold: bool = True
    ) -> float:
        start = time.perf_counter()
        call()
        return (time.perf_counter() - start) * 1e3

    def environment(self) -> dict[str, str]:
        return {"device": platform.processor() or platform.machine()}


class UnknownDeviceError(ValueError):
    """The judge knows no such device."""


def open_device(name: str) -> Device:
    """The device called ``name``: ``cpu``, or ``cuda`` (through torch where it is installed,
    through the driver otherwise). Raises what the driver raises if there is no GPU."""
    if name == "cpu":
        return HostDevice()
    if name != "cuda":
        raise UnknownDeviceError(f"the device is `{name}`; known are cpu and cuda")
    if find_spec("torch") is not None:
        from cake.judge.device_torch import TorchDevice

        return TorchDevice()
    from cake.judge.device_cuda import CudaDevice

    return CudaDevice()
