"""Tensors of the host in files that parent and child both map.

The parent fills them before a call and reads them after it, so that inputs, guards, outputs and
the clock are its own although the candidate runs in the child.
"""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cake.judge.arguments import GUARD_BYTES
from cake.judge.devices import Bytes, HostDevice
from cake.workloads import Problem


class SharedDevice(HostDevice):
    """The CPU with buffers in numbered files of ``folder``, which is made."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._count = 0

    def allocate(self, size: int) -> Bytes:
        path = self._folder / f"{self._count}.bin"
        self._count += 1
        with path.open("wb") as file:
            file.truncate(size)
        return _mapped(path)


def _mapped(path: Path) -> Bytes:
    """The bytes of a file, shared with every process that maps it; pages are aligned enough."""
    with path.open("r+b") as file:
        return np.frombuffer(mmap.mmap(file.fileno(), 0), dtype=np.uint8)


def shared_arrays(instance: Problem, folder: Path) -> Mapping[str, Any]:
    """The tensors of a problem that the parent has made on a :class:`SharedDevice`: one buffer
    each, in the order of the contract, between two guards."""
    device = HostDevice()
    arrays = {}
    for number, spec in enumerate(instance.contract.tensors):
        buffer = _mapped(folder / f"{number}.bin")
        shape, dtype = instance.shape_of(spec.name), instance.dtype_of(spec.name)
        arrays[spec.name] = device.array(buffer, GUARD_BYTES, shape, dtype)
    return arrays
