"""A GPU through torch: its arrays are torch tensors, so that torch baselines can run beside."""

from __future__ import annotations

import math
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np

from cake.judge.devices import Bytes
from cake.judge.gpu_clock import (
    EVENTS,
    FLUSH_FACTOR,
    Spinner,
    best_clock,
    reset_persisting_l2,
)

torch: Any = import_module("torch")  # optional, and without types where it is not installed


class TorchDevice:
    """The current CUDA device of torch, on torch's current stream."""

    def __init__(self) -> None:
        self._properties = torch.cuda.get_device_properties(torch.cuda.current_device())
        self._flush = self.allocate(FLUSH_FACTOR * self._properties.L2_cache_size)
        self._spinner = Spinner()
        self._clock, self._no_cupti = best_clock(_stream, _Events())
        self.clock = self._clock.name

    def allocate(self, size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8, device="cuda")

    def array(
        self, buffer: Any, offset: int, shape: tuple[int, ...], dtype: np.dtype[np.generic]
    ) -> Any:
        size = math.prod(shape) * dtype.itemsize
        return buffer[offset : offset + size].view(torch_dtype(dtype)).reshape(shape)

    def fill(self, buffer: Any, start: int, stop: int, byte: int) -> None:
        buffer[start:stop].fill_(byte)

    def upload(self, buffer: Any, start: int, data: Bytes) -> None:
        buffer[start : start + data.size].copy_(torch.from_numpy(data))

    def download(self, buffer: Any, start: int, stop: int) -> Bytes:
        host: Bytes = buffer[start:stop].cpu().numpy()
        return host

    def copy(self, source: Any, target: Any, start: int, size: int) -> None:
        target[start : start + size].copy_(source[:size])

    def synchronize(self) -> None:
        torch.cuda.synchronize()

    def measure(
        self, call: Callable[[], object], host_seconds: float, *, cold: bool = True
    ) -> float:
        if cold:
            reset_persisting_l2()
            self._flush_l2()
        else:
            call()  # fills the L2
        self._spinner.enqueue(host_seconds, _stream())
        self._clock.begin()
        call()
        return self._clock.end()

    def graph(self, call: Callable[[], object]) -> Callable[[], object] | None:
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                call()
        except Exception:
            # A call that synchronises or allocates outside of torch cannot be captured.
            torch.cuda.synchronize()
            return None
        replay: Callable[[], object] = graph.replay
        return replay

    def _flush_l2(self) -> None:
        """Write all of the flush buffer, then read half of it into the other half."""
        self._flush.zero_()
        half = self._flush.numel() // 2
        self._flush[half : 2 * half].copy_(self._flush[:half])

    def environment(self) -> dict[str, str]:
        return {
            "device": self._properties.name,
            "l2_bytes": str(self._properties.L2_cache_size),
            "torch": torch.__version__,
            "cuda": str(torch.version.cuda),
            **({"no_cupti": self._no_cupti} if self._no_cupti else {}),
        }


class _Events:
    """CUDA events on torch's current stream."""

    name = EVENTS

    def __init__(self) -> None:
        self._start, self._end = (torch.cuda.Event(enable_timing=True) for _ in range(2))

    def begin(self) -> None:
        self._start.record()

    def end(self) -> float:
        self._end.record()
        self._end.synchronize()
        return float(self._start.elapsed_time(self._end))


def _stream() -> int:
    return int(torch.cuda.current_stream().cuda_stream)


def torch_dtype(dtype: np.dtype[np.generic]) -> Any:
    """The torch type of the same name as the numpy or ml_dtypes type."""
    return getattr(torch, dtype.name)
