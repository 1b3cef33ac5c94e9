"""Stand-ins for arrays, devices and the driver, so that launches can be tested without a GPU."""

import ctypes
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from cuda.bindings import driver as bindings

from cake.codegen.abi import KernelAbi, PointerArg, TensorSpec
from cake.runtime.driver import Device

H200 = Device(
    ordinal=0,
    name="H200 stand-in",
    capability=(9, 0),
    sms=132,
    sm_clock_khz=1_980_000,
    memory_clock_khz=3_201_000,
    memory_bytes=141 << 30,
    l2_bytes=50 << 20,
    smem_per_block_bytes=232_448,
)


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * extent)
    return tuple(reversed(strides)) if shape else ()


class FakeTensor:
    """What the runtime reads of a torch tensor."""

    def __init__(
        self,
        shape: Sequence[int],
        dtype: str = "torch.float32",
        *,
        pointer: int = 0x7F00_0000_0000,
        strides: Sequence[int] | None = None,
        device: int = 0,
    ) -> None:
        self.shape = tuple(shape)
        self.dtype = dtype
        self._pointer = pointer
        self._strides = row_major(shape) if strides is None else tuple(strides)
        self._device = device

    def data_ptr(self) -> int:
        return self._pointer

    def stride(self) -> tuple[int, ...]:
        return self._strides

    def get_device(self) -> int:
        return self._device


class FakeInterface:
    """An object with ``__cuda_array_interface__``; keywords override or add entries."""

    def __init__(self, shape: Sequence[int], typestr: str = "<f4", **entries: Any) -> None:
        self.__cuda_array_interface__ = {
            "shape": tuple(shape),
            "typestr": typestr,
            "data": (0x7F00_0000_0000, False),
            "version": 3,
            **entries,
        }


def simple_abi(**changes: Any) -> KernelAbi:
    """A kernel ``copy(x, y)`` over N floats; keywords replace fields."""
    fields: dict[str, Any] = {
        "name": "copy",
        "target": "sm_90a",
        "tensors": (
            TensorSpec(name="x", dtype="f32", shape=("N",), writable=False, align=16),
            TensorSpec(name="y", dtype="f32", shape=("N",), writable=True, align=16),
        ),
        "scalars": (),
        "args": (PointerArg(tensor="x"), PointerArg(tensor="y")),
        "workspaces": (),
        "guards": (),
        "grid": ("cdiv(N, 128)", "1", "1"),
        "cluster": None,
        "block": 128,
        "smem_bytes": 0,
        "pdl": False,
        "min_blocks": 1,
    }
    return KernelAbi(**(fields | changes))


@dataclass
class Launch:
    """What the driver saw of one launch: the 8 bytes at each parameter's address."""

    grid: tuple[int, int, int]
    block: int
    smem: int
    stream: int
    attributes: list[Any]
    parameters: list[int]
    addresses: list[int]


@dataclass
class FakeDriver:
    """The calls of ``cuda.bindings.driver`` that a launch makes, recorded; enums are the real ones.

    ``parameter_count`` is how many parameters the kernel has, which the real driver knows from the
    code. ``context`` is the handle of the current context, ``launch_status`` what a launch returns.
    """

    parameter_count: int
    context: int = 1000
    launch_status: Any = bindings.CUresult.CUDA_SUCCESS
    launches: list[Launch] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    pushed: list[int] = field(default_factory=list)
    attributes_set: dict[str, int] = field(default_factory=dict)
    allocations: list[tuple[int, int]] = field(default_factory=list)
    cleared: list[tuple[int, int]] = field(default_factory=list)

    OK = bindings.CUresult.CUDA_SUCCESS

    def __getattr__(self, name: str) -> Any:
        if name.startswith("CU"):
            return getattr(bindings, name)

        def anything(*arguments: Any) -> tuple[Any, int]:
            self.calls.append(name)
            return self.OK, 7

        return anything

    def cuCtxGetCurrent(self) -> tuple[Any, Any]:
        return self.OK, bindings.CUcontext(self.context)

    def cuCtxPushCurrent(self, context: Any) -> tuple[Any]:
        self.pushed.append(int(context))
        return (self.OK,)

    def cuFuncSetAttribute(self, function: Any, attribute: Any, value: int) -> tuple[Any]:
        self.attributes_set[attribute.name.removeprefix("CU_FUNC_ATTRIBUTE_")] = value
        return (self.OK,)

    def cuMemAlloc(self, size: int) -> tuple[Any, int]:
        self.calls.append("cuMemAlloc")
        pointer = 0x10_0000 * (len(self.allocations) + 1)
        self.allocations.append((pointer, size))
        return self.OK, pointer

    def cuMemsetD8Async(self, pointer: int, value: int, size: int, stream: Any) -> tuple[Any]:
        assert value == 0
        self.cleared.append((pointer, size))
        return (self.OK,)

    def cuGetErrorString(self, error: Any) -> tuple[Any, bytes]:
        return self.OK, b"said by the stand-in"

    def cuLaunchKernelEx(
        self, config: Any, function: Any, parameters: int, extra: int
    ) -> tuple[Any]:
        time.sleep(1e-5)  # the real call lets other threads run, too
        addresses = (ctypes.c_void_p * self.parameter_count).from_address(parameters)
        values = [ctypes.c_uint64.from_address(address or 0).value for address in addresses]
        self.launches.append(
            Launch(
                grid=(config.gridDimX, config.gridDimY, config.gridDimZ),
                block=config.blockDimX * config.blockDimY * config.blockDimZ,
                smem=config.sharedMemBytes,
                stream=int(config.hStream),
                attributes=list(config.attrs[: config.numAttrs]),
                parameters=values,
                addresses=[address or 0 for address in addresses],
            )
        )
        return (self.launch_status,)
