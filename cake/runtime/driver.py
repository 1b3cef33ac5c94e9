"""The CUDA driver: found before anything relies on it, and asked through one checked call.

Some CUDA libraries raise half-way without a driver and leave a lock held, so that the next call
hangs. Therefore everything here starts with :func:`driver`, which looks for ``libcuda`` by itself.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any

from cake.diag import CakeError, Diagnostic
from cake.runtime.findings import DRIVER_ERROR, NO_DRIVER

_LIBRARY = "libcuda.so.1"

_CONTEXT_LOST = frozenset(
    {
        "CUDA_ERROR_ILLEGAL_ADDRESS",
        "CUDA_ERROR_ILLEGAL_INSTRUCTION",
        "CUDA_ERROR_LAUNCH_FAILED",
        "CUDA_ERROR_LAUNCH_TIMEOUT",
        "CUDA_ERROR_MISALIGNED_ADDRESS",
        "CUDA_ERROR_ASSERT",
        "CUDA_ERROR_HARDWARE_STACK_ERROR",
    }
)


class NoDriver(CakeError):
    """This machine has no usable CUDA driver."""


class DriverError(CakeError):
    """A call of the driver failed; ``name`` is its error, such as ``CUDA_ERROR_OUT_OF_MEMORY``."""

    def __init__(self, diagnostics: tuple[Diagnostic, ...], name: str) -> None:
        super().__init__(diagnostics)
        self.name = name
        self.args = (diagnostics, name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Device:
    """Facts of one GPU: clocks in kHz at their highest, sizes in bytes."""

    ordinal: int
    name: str
    capability: tuple[int, int]
    sms: int
    sm_clock_khz: int
    memory_clock_khz: int
    memory_bytes: int
    l2_bytes: int
    smem_per_block_bytes: int


def _no_driver(problem: str) -> NoDriver:
    return NoDriver(
        [
            Diagnostic.of(
                NO_DRIVER,
                problem,
                helps=(
                    "install the NVIDIA driver; in a container, start it with access to the GPU",
                    "checking, simulating and building need no GPU",
                ),
            )
        ]
    )


@cache
def libcuda() -> ctypes.CDLL:
    """The driver's library; raises :class:`NoDriver` if there is none."""
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError as error:
        raise _no_driver(f"the CUDA driver cannot be loaded: {error}") from None


@cache
def driver() -> Any:
    """The module ``cuda.bindings.driver``, initialised.

    Raises :class:`NoDriver` if the library is absent, cannot be initialised, or sees no GPU.
    """
    libcuda()
    from cuda.bindings import driver as bindings

    try:
        (error,) = bindings.cuInit(0)
    except RuntimeError as problem:  # the bindings and the library do not fit together
        raise _no_driver(f"the CUDA driver cannot be used: {problem}") from None
    if error:
        raise _no_driver(f"the CUDA driver cannot be initialised: {error.name}")
    return bindings


def checked(result: tuple[Any, ...], call: str) -> Any:
    """The values of a call of the bindings without its status: none, one, or a tuple of several.

    Raises :class:`DriverError` if the status is an error; ``call`` names the call.
    """
    error, *values = result
    if error:
        raise driver_error(error, call)
    return values[0] if len(values) == 1 else tuple(values)


def driver_error(error: Any, call: str) -> DriverError:
    """The exception for a driver status that is an error."""
    _, text = driver().cuGetErrorString(error)
    said = text.decode() if text else "no description"
    helps: tuple[str, ...] = ()
    if error.name in _CONTEXT_LOST:
        helps = ("the CUDA context is lost: an earlier kernel failed; start a new process",)
    finding = Diagnostic.of(
        DRIVER_ERROR,
        f"{call} failed with {error.name}: {said}",
        facts={"cuda_error": error.name, "call": call},
        helps=helps,
    )
    return DriverError((finding,), error.name)


def device_count() -> int:
    """How many GPUs the driver shows."""
    return int(checked(driver().cuDeviceGetCount(), "cuDeviceGetCount"))


@cache
def device(ordinal: int) -> Device:
    """The facts of GPU ``ordinal``."""
    cu = driver()
    handle = checked(cu.cuDeviceGet(ordinal), "cuDeviceGet")
    kinds = cu.CUdevice_attribute

    def attribute(name: str) -> int:
        kind = getattr(kinds, f"CU_DEVICE_ATTRIBUTE_{name}")
        return int(checked(cu.cuDeviceGetAttribute(kind, handle), "cuDeviceGetAttribute"))

    name = checked(cu.cuDeviceGetName(128, handle), "cuDeviceGetName")
    return Device(
        ordinal=ordinal,
        name=name.split(b"\0")[0].decode(),
        capability=(
            attribute("COMPUTE_CAPABILITY_MAJOR"),
            attribute("COMPUTE_CAPABILITY_MINOR"),
        ),
        sms=attribute("MULTIPROCESSOR_COUNT"),
        sm_clock_khz=attribute("CLOCK_RATE"),
        memory_clock_khz=attribute("MEMORY_CLOCK_RATE"),
        memory_bytes=int(checked(cu.cuDeviceTotalMem(handle), "cuDeviceTotalMem")),
        l2_bytes=attribute("L2_CACHE_SIZE"),
        smem_per_block_bytes=attribute("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN"),
    )


@cache
def primary_context(ordinal: int) -> Any:
    """The primary context of GPU ``ordinal``, which torch, CuPy, JAX and Numba use too.

    It is retained once and kept until the process ends.
    """
    cu = driver()
    handle = checked(cu.cuDeviceGet(ordinal), "cuDeviceGet")
    return checked(cu.cuDevicePrimaryCtxRetain(handle), "cuDevicePrimaryCtxRetain")


@contextmanager
def current(ordinal: int) -> Iterator[None]:
    """Makes the primary context of GPU ``ordinal`` the thread's own for the block."""
    cu = driver()
    checked(cu.cuCtxPushCurrent(primary_context(ordinal)), "cuCtxPushCurrent")
    try:
        yield
    finally:
        checked(cu.cuCtxPopCurrent(), "cuCtxPopCurrent")


@contextmanager
def during_capture() -> Iterator[None]:
    """Allows allocation and loading in the block although a stream of this thread is captured.

    Neither is recorded in the graph. (CUDA driver API, cuThreadExchangeStreamCaptureMode.)
    """
    cu = driver()
    exchange: Callable[[Any], tuple[Any, ...]] = cu.cuThreadExchangeStreamCaptureMode
    relaxed = cu.CUstreamCaptureMode.CU_STREAM_CAPTURE_MODE_RELAXED
    before = checked(exchange(relaxed), "cuThreadExchangeStreamCaptureMode")
    try:
        yield
    finally:
        checked(exchange(before), "cuThreadExchangeStreamCaptureMode")


def pointer_device(pointer: int) -> int | None:
    """The ordinal of the GPU whose memory ``pointer`` lies in; None for host memory."""
    cu = driver()
    kinds = cu.CUpointer_attribute
    error, kind = cu.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)
    if error == cu.CUresult.CUDA_ERROR_INVALID_CONTEXT:
        # This thread has not used a GPU yet; any context of the process will do for the question.
        checked(cu.cuCtxSetCurrent(primary_context(0)), "cuCtxSetCurrent")
        error, kind = cu.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)
    if error or int(kind) != int(cu.CUmemorytype.CU_MEMORYTYPE_DEVICE):
        return None
    ordinal = cu.cuPointerGetAttribute(kinds.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer)
    return int(checked(ordinal, "cuPointerGetAttribute"))
