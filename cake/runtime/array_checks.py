"""Checks of one array against the tensor argument that it is passed for."""

from __future__ import annotations

from collections.abc import Iterator

from cake.codegen.abi import KernelAbi, PointerArg, StrideArg, TensorSpec
from cake.diag import Diagnostic, Fact
from cake.ir.dtypes import DTYPES
from cake.runtime.arrays import ANYWHERE, HOST, ArrayView
from cake.runtime.findings import (
    MISALIGNED,
    READ_ONLY,
    WRONG_DEVICE,
    WRONG_DTYPE,
    WRONG_SHAPE,
    WRONG_STRIDES,
)


def array_findings(
    spec: TensorSpec, array: ArrayView, abi: KernelAbi, device: int
) -> Iterator[Diagnostic]:
    """What is wrong with ``array`` on its own, as an argument of a launch on GPU ``device``."""
    yield from _element_findings(spec, array)
    yield from _place_findings(spec, array, device)
    if len(array.shape) != len(spec.shape):
        yield Diagnostic.of(
            WRONG_SHAPE,
            f"`{spec.name}` has rank {len(array.shape)} (shape {array.shape}); the kernel takes "
            f"rank {len(spec.shape)} ({_signature(spec)})",
            facts={"tensor": spec.name, "rank": len(array.shape), "expected": len(spec.shape)},
            helps=("reshape the array",),
        )
        return
    yield from _stride_findings(spec, array, abi)


def _element_findings(spec: TensorSpec, array: ArrayView) -> Iterator[Diagnostic]:
    # tf32 is a way to multiply f32 numbers, not a way to store them.
    stored = "f32" if spec.dtype == "tf32" else spec.dtype
    if array.dtype != stored:
        yield Diagnostic.of(
            WRONG_DTYPE,
            f"`{spec.name}` has element type {array.dtype}; the kernel takes {stored}",
            facts={"tensor": spec.name, "dtype": array.dtype, "expected": stored},
            helps=(f"convert `{spec.name}` to {stored} before the call",),
        )
    if spec.writable and array.readonly:
        yield Diagnostic.of(
            READ_ONLY,
            f"`{spec.name}` is read-only; the kernel writes to it",
            facts={"tensor": spec.name},
            helps=("pass a writable array",),
        )


def _place_findings(spec: TensorSpec, array: ArrayView, device: int) -> Iterator[Diagnostic]:
    if array.device not in (device, ANYWHERE):
        where = "in host memory" if array.device == HOST else f"on GPU {array.device}"
        yield Diagnostic.of(
            WRONG_DEVICE,
            f"`{spec.name}` is {where}; the launch is on GPU {device}",
            facts={"tensor": spec.name, "device": array.device, "expected": device},
            helps=(f"move `{spec.name}` to GPU {device}",),
        )
    if array.pointer % spec.align:
        yield Diagnostic.of(
            MISALIGNED,
            f"`{spec.name}` starts at {array.pointer:#x}, which is not a multiple of "
            f"{spec.align} bytes",
            facts={"tensor": spec.name, "address": array.pointer, "align": spec.align},
            helps=(f"copy `{spec.name}`: a fresh allocation is aligned to 256 bytes",),
        )
    if not array.pointer and 0 not in array.shape:
        yield Diagnostic.of(
            WRONG_DEVICE,
            f"`{spec.name}` has shape {array.shape} and no memory",
            facts={"tensor": spec.name, "address": 0},
            helps=("pass an array that holds data (not a meta or fake tensor)",),
        )


def _stride_findings(spec: TensorSpec, array: ArrayView, abi: KernelAbi) -> Iterator[Diagnostic]:
    given = {a.axis: a for a in abi.args if isinstance(a, StrideArg) and a.tensor == spec.name}
    by_pointer = any(isinstance(a, PointerArg) and a.tensor == spec.name for a in abi.args)
    for axis, (extent, stride) in enumerate(zip(array.shape, array.strides, strict=True)):
        if extent <= 1 or 0 in array.shape:
            continue  # never multiplied by more than zero
        if axis in given:
            wanted = None if stride % given[axis].multiple == 0 else given[axis].multiple
            rule = "a multiple of"
        else:
            row = _row_stride(array, axis)
            wanted = row if by_pointer and stride != row else None
            rule = "exactly"
        if wanted is None and spec.writable and stride == 0:
            wanted, rule = 1, "at least"
        if wanted is not None:
            yield _stride_finding(spec, array, axis, f"{rule} {wanted}")


def _row_stride(array: ArrayView, axis: int) -> int:
    """The stride of ``axis`` in a row-major array with the strides of the axes to its right.

    Axes of extent 1 are passed over: their strides mean nothing.
    """
    for right in range(axis + 1, len(array.shape)):
        if array.shape[right] != 1:
            return array.shape[right] * array.strides[right]
    return 1


def _stride_finding(spec: TensorSpec, array: ArrayView, axis: int, wanted: str) -> Diagnostic:
    facts: dict[str, Fact] = {
        "tensor": spec.name,
        "axis": axis,
        "stride": array.strides[axis],
        "strides": array.strides,
        "shape": array.shape,
    }
    return Diagnostic.of(
        WRONG_STRIDES,
        f"`{spec.name}` has stride {array.strides[axis]} along axis {axis} "
        f"(shape {array.shape}, strides {array.strides}, in elements); the kernel takes {wanted}",
        facts=facts,
        helps=(f"pass a contiguous copy of `{spec.name}`",),
    )


def _signature(spec: TensorSpec) -> str:
    return f"{DTYPES[spec.dtype]}[{', '.join(map(str, spec.shape))}]"
