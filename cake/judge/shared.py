"""Tensors of the host in files that the child maps and the parent reads and writes.

The parent fills them before a call and reads them after it, so that inputs, guards, outputs and
the clock are its own although the candidate runs in the child. It never maps them itself: a child
that cuts a file short would end a process that touches what is gone (mmap(2), SIGBUS).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cake.judge.arguments import GUARD_BYTES
from cake.judge.devices import Bytes, HostDevice
from cake.judge.files import create, open_file, read_at, write_at
from cake.workloads import Problem


class SharedBuffer:
    """A file that this process made, by its descriptor; closed with the object."""

    def __init__(self, path: Path, size: int) -> None:
        self.handle = create(path, size)

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            os.close(self.handle)


class SharedDevice:
    """The parent's side: buffers are numbered files in ``folder``; there are no arrays."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._count = 0

    def allocate(self, size: int) -> SharedBuffer:
        self._count += 1
        return SharedBuffer(self._folder / f"{self._count - 1}.bin", size)

    def array(
        self,
        buffer: SharedBuffer,
        offset: int,
        shape: tuple[int, ...],
        dtype: np.dtype[np.generic],
    ) -> None:
        """Only the child has arrays: :func:`shared_arrays`."""

    def fill(self, buffer: SharedBuffer, start: int, stop: int, byte: int) -> None:
        write_at(buffer.handle, start, np.full(stop - start, byte, dtype=np.uint8))

    def upload(self, buffer: SharedBuffer, start: int, data: Bytes) -> None:
        write_at(buffer.handle, start, data)

    def download(self, buffer: SharedBuffer, start: int, stop: int) -> Bytes:
        return read_at(buffer.handle, start, stop)

    def copy(self, source: SharedBuffer, target: SharedBuffer, start: int, size: int) -> None:
        write_at(target.handle, start, read_at(source.handle, 0, size))


def shared_arrays(instance: Problem, folder: Path) -> Mapping[str, Any]:
    """The child's side: the tensors of a problem over the parent's files, one each in the order of
    the contract, between two guards. Raises :class:`cake.judge.files.FileError`."""
    device = HostDevice()
    arrays = {}
    for number, spec in enumerate(instance.contract.tensors):
        shape, dtype = instance.shape_of(spec.name), instance.dtype_of(spec.name)
        size = 2 * GUARD_BYTES + instance.bytes_of(spec.name)
        handle = open_file(folder / f"{number}.bin", size, writable=True)
        buffer = np.frombuffer(mmap.mmap(handle, size), dtype=np.uint8)
        os.close(handle)
        arrays[spec.name] = device.array(buffer, GUARD_BYTES, shape, dtype)
    return arrays
