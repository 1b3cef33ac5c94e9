"""The plan of a launch: everything that depends on shapes, laid out for the driver.

A plan owns the memory from which the driver copies kernel parameters. Each parameter has an 8-byte
slot; for a tensor map the parameter's pointer leads to the map's own 128 bytes instead.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Sequence
from typing import Any

from cake.codegen.abi import KernelAbi, PointerArg, ScalarArg, TensorMapArg, WorkspaceArg
from cake.runtime.arrays import ArrayView
from cake.runtime.binding import Binding, LaunchError, number
from cake.runtime.tensormap import QUANTUM, MapSpec

_SLOT = 8
_CTYPES = {"i32": ctypes.c_int32, "i64": ctypes.c_int64, "f32": ctypes.c_float}


class Plan:
    """How to launch one kernel for one set of shapes on one GPU.

    ``cu`` is the module ``cuda.bindings.driver``. Use under :attr:`lock`: the buffers hold one
    launch at a time.
    """

    def __init__(
        self, cu: Any, abi: KernelAbi, binding: Binding, arrays: Sequence[ArrayView], device: int
    ) -> None:
        self.device = device
        self.empty = binding.empty
        self.lock = threading.Lock()
        self.config = _config(cu, abi, binding)
        count = len(abi.args)
        self.values = (ctypes.c_uint64 * max(count, 1))()
        self._pointers = (ctypes.c_void_p * max(count, 1))()
        self.parameters = ctypes.addressof(self._pointers)
        for index in range(count):
            self._pointers[index] = ctypes.addressof(self.values) + index * _SLOT
        for index, value in binding.numbers.items():
            self.values[index] = value & (2**64 - 1)  # little-endian: i32 is the low half

        places = {tensor.name: place for place, tensor in enumerate(abi.tensors)}
        scalars = {scalar.name: place for place, scalar in enumerate(abi.scalars)}
        sizes = binding.workspaces
        self.workspaces: list[tuple[int, str, int, bool]] = []
        # Parameter, place of its tensor (none if that has no elements), geometry.
        self.maps: list[tuple[int, int | None, MapSpec]] = []
        self._addresses: list[tuple[int, int]] = []
        self._scalars: list[tuple[Any, int]] = []
        self._scalar_specs = abi.scalars
        self._misaligned = [tensor.align - 1 for tensor in abi.tensors]
        self._no_elements = [0 in array.shape for array in arrays]
        zeroed = {workspace.name: workspace.zeroed for workspace in abi.workspaces}
        for index, arg in enumerate(abi.args):
            match arg:
                case PointerArg(tensor=name):
                    self._addresses.append((index, places[name]))
                case TensorMapArg(tensor=name) if not self.empty:
                    place = places[name]
                    nothing = self._no_elements[place]
                    self.maps.append((index, None if nothing else place, binding.maps[index]))
                    self._misaligned[place] |= QUANTUM - 1
                case ScalarArg(name=name):
                    kind = _CTYPES[abi.scalar(name).dtype]
                    slot = kind.from_buffer(self.values, index * _SLOT)
                    self._scalars.append((slot, scalars[name]))
                case WorkspaceArg(name=name):
                    self.workspaces.append((index, name, sizes[name], zeroed[name]))

    def refuses(self, pointers: Sequence[int]) -> bool:
        """Whether one of the addresses needs the full check: it is misaligned or null."""
        for pointer, mask, no_elements in zip(
            pointers, self._misaligned, self._no_elements, strict=True
        ):
            if pointer & mask or not (pointer or no_elements):
                return True
        return False

    def fill(self, pointers: Sequence[int], scalars: Sequence[Any]) -> None:
        """Write the addresses and scalars of one launch; raises :class:`LaunchError`."""
        for index, place in self._addresses:
            self.values[index] = pointers[place]
        for slot, place in self._scalars:
            value = number(self._scalar_specs[place], scalars[place])
            if not isinstance(value, int | float):
                raise LaunchError([value])
            slot.value = value

    def point_to_map(self, index: int, address: int) -> None:
        """Let parameter ``index`` be the 128 bytes at ``address``."""
        self._pointers[index] = address


def _config(cu: Any, abi: KernelAbi, binding: Binding) -> Any:
    config = cu.CUlaunchConfig()
    config.gridDimX, config.gridDimY, config.gridDimZ = binding.grid
    config.blockDimX, config.blockDimY, config.blockDimZ = abi.block, 1, 1
    config.sharedMemBytes = abi.smem_bytes
    attributes = []
    kinds = cu.CUlaunchAttributeID
    if abi.cluster is not None:
        cluster = cu.CUlaunchAttribute()
        cluster.id = kinds.CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION
        size = cluster.value.clusterDim
        size.x, size.y, size.z = abi.cluster
        attributes.append(cluster)
    if abi.pdl:
        overlap = cu.CUlaunchAttribute()
        overlap.id = kinds.CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION
        overlap.value.programmaticStreamSerializationAllowed = 1
        attributes.append(overlap)
    config.attrs = attributes
    config.numAttrs = len(attributes)
    return config
