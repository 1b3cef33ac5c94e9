"""Device memory that kernels use between their blocks: tickets, semaphores, partial results."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from cake.runtime import driver


@dataclass(frozen=True, slots=True, kw_only=True)
class _Block:
    pointer: int
    bytes: int


class WorkspacePool:
    """The workspaces of one kernel, one set for each device and stream.

    Launches on one stream run one after another and share memory; launches on two streams do not.
    A block that has become too small is kept, because a captured graph may still use it; each new
    one at least doubles, so that all of them together stay below twice the largest.
    """

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int, str], list[_Block]] = {}
        self._lock = threading.Lock()

    def pointer(self, *, device: int, stream: int, name: str, size: int, zeroed: bool) -> int:
        """The address of at least ``size`` bytes for workspace ``name``; 0 if ``size`` is 0.

        The context of ``device`` must be current. Allocates only if no earlier call for this
        stream asked for as much; that also works while the stream is captured.
        """
        if size == 0:
            return 0
        with self._lock:
            blocks = self._blocks.setdefault((device, stream, name), [])
            if not blocks or blocks[-1].bytes < size:
                grown = max(size, 2 * blocks[-1].bytes) if blocks else size
                blocks.append(_allocate(grown, zeroed))
            return blocks[-1].pointer

    def free(self) -> None:
        """Give all memory back; no launch may be running and no captured graph may be left."""
        cu = driver.driver()
        with self._lock:
            for (device, _, _), blocks in self._blocks.items():
                with driver.current(device):
                    for block in blocks:
                        driver.checked(cu.cuMemFree(block.pointer), "cuMemFree")
            self._blocks.clear()


def _allocate(size: int, zeroed: bool) -> _Block:
    cu = driver.driver()
    with driver.during_capture():
        pointer = int(driver.checked(cu.cuMemAlloc(size), f"cuMemAlloc of {size} bytes"))
        if zeroed:
            _clear(cu, pointer, size)
    return _Block(pointer=pointer, bytes=size)


def _clear(cu: Any, pointer: int, size: int) -> None:
    """Zero fresh memory on a stream of its own and wait: the launch may be under capture, and a
    clearing that became part of the graph would be repeated with each replay."""
    flags = int(cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
    stream = driver.checked(cu.cuStreamCreate(flags), "cuStreamCreate")
    try:
        driver.checked(cu.cuMemsetD8Async(pointer, 0, size, stream), "cuMemsetD8Async")
        driver.checked(cu.cuStreamSynchronize(stream), "cuStreamSynchronize")
    finally:
        driver.checked(cu.cuStreamDestroy(stream), "cuStreamDestroy")
