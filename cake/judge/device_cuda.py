"""A GPU through the CUDA driver alone, for machines without torch."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from cake.judge.devices import ALIGNMENT, Bytes
from cake.judge.gpu_clock import (
    EVENTS,
    FLUSH_FACTOR,
    Spinner,
    best_clock,
    reset_persisting_l2,
)
from cake.runtime import driver
from cake.runtime.driver import checked

DEFAULT_STREAM = 0


class CudaBuffer:
    """Device memory, freed with the object."""

    def __init__(self, size: int) -> None:
        # The driver refuses to allocate nothing.
        allocated = driver.driver().cuMemAlloc(max(size, ALIGNMENT))
        self.pointer = int(checked(allocated, "cuMemAlloc"))
        self.size = size
        self._free = driver.driver().cuMemFree  # modules may be gone when the object dies

    def __del__(self) -> None:
        if hasattr(self, "_free"):
            self._free(self.pointer)  # its status says nothing new after a lost context


class CudaArray:
    """An array in device memory, with the members of a torch tensor that
    :mod:`cake.runtime.arrays` reads. It is contiguous, or the leading part of one whose extents
    are ``stored``."""

    def __init__(
        self,
        buffer: CudaBuffer,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
        *,
        stored: tuple[int, ...] | None = None,
    ) -> None:
        self._buffer = buffer  # keeps the memory
        self._pointer = buffer.pointer + offset
        self.shape = shape
        self.dtype = dtype
        self._stored = shape if stored is None else stored

    def data_ptr(self) -> int:
        return self._pointer

    def stride(self) -> tuple[int, ...]:
        """Strides in elements."""
        return tuple(math.prod(self._stored[axis + 1 :]) for axis in range(len(self.shape)))

    def get_device(self) -> int:
        return 0


class CudaDevice:
    """GPU 0 in its primary context, on the default stream."""

    def __init__(self) -> None:
        self._cu = driver.driver()
        self._facts = driver.device(0)
        checked(self._cu.cuCtxSetCurrent(driver.primary_context(0)), "cuCtxSetCurrent")
        self._flush = self.allocate(FLUSH_FACTOR * self._facts.l2_bytes)
        self._spinner = Spinner()
        self._clock, self._no_cupti = best_clock(lambda: DEFAULT_STREAM, _Events())
        self.clock = self._clock.name

    def allocate(self, size: int) -> CudaBuffer:
        return CudaBuffer(size)

    def array(
        self, buffer: CudaBuffer, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> CudaArray:
        return CudaArray(buffer, offset, shape, dtype)

    def fill(self, buffer: CudaBuffer, start: int, stop: int, byte: int) -> None:
        if stop > start:
            target = buffer.pointer + start
            done = self._cu.cuMemsetD8Async(target, byte, stop - start, DEFAULT_STREAM)
            checked(done, "cuMemsetD8Async")

    def upload(self, buffer: CudaBuffer, start: int, data: Bytes) -> None:
        if data.size:
            done = self._cu.cuMemcpyHtoD(buffer.pointer + start, data.ctypes.data, data.size)
            checked(done, "cuMemcpyHtoD")

    def download(self, buffer: CudaBuffer, start: int, stop: int) -> Bytes:
        host = np.empty(stop - start, dtype=np.uint8)
        if host.size:
            done = self._cu.cuMemcpyDtoH(host.ctypes.data, buffer.pointer + start, host.size)
            checked(done, "cuMemcpyDtoH")
        return host

    def copy(self, source: CudaBuffer, target: CudaBuffer, start: int, size: int) -> None:
        if size:
            to = target.pointer + start
            done = self._cu.cuMemcpyDtoDAsync(to, source.pointer, size, DEFAULT_STREAM)
            checked(done, "cuMemcpyDtoDAsync")

    def synchronize(self) -> None:
        checked(self._cu.cuCtxSynchronize(), "cuCtxSynchronize")

    def measure(
        self, call: Callable[[], object], host_seconds: float, *, cold: bool = True
    ) -> float:
        if cold:
            reset_persisting_l2()
            self._flush_l2()
        else:
            call()  # fills the L2
        self._spinner.enqueue(host_seconds, DEFAULT_STREAM)
        self._clock.begin()
        call()
        return self._clock.end()

    def graph(self, call: Callable[[], object]) -> None:
        """The legacy default stream cannot be captured."""

    def _flush_l2(self) -> None:
        """Write all of the flush buffer, then read half of it into the other half."""
        self.fill(self._flush, 0, self._flush.size, 0)
        half = self._flush.size // 2
        self.copy(self._flush, self._flush, half, half)

    def environment(self) -> dict[str, str]:
        version = checked(self._cu.cuDriverGetVersion(), "cuDriverGetVersion")
        return {
            "device": self._facts.name,
            "l2_bytes": str(self._facts.l2_bytes),
            "driver_api": str(version),
            **({"no_cupti": self._no_cupti} if self._no_cupti else {}),
        }


class _Events:
    """CUDA events on the default stream."""

    name = EVENTS

    def __init__(self) -> None:
        self._cu = driver.driver()
        self._start, self._end = (
            checked(self._cu.cuEventCreate(0), "cuEventCreate") for _ in range(2)
        )

    def begin(self) -> None:
        checked(self._cu.cuEventRecord(self._start, DEFAULT_STREAM), "cuEventRecord")

    def end(self) -> float:
        checked(self._cu.cuEventRecord(self._end, DEFAULT_STREAM), "cuEventRecord")
        checked(self._cu.cuEventSynchronize(self._end), "cuEventSynchronize")
        elapsed = self._cu.cuEventElapsedTime(self._start, self._end)
        return float(checked(elapsed, "cuEventElapsedTime"))
