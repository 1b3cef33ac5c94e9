"""Tensors of a schedule against those of a problem: which fit, and which are temporaries."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Program, ScalarParam, TensorParam
from cake.workloads import Problem

ROW_BYTES = 16
"""Rows that are multiples of this suit every access: 16 bytes is the widest vector, and what TMA
asks of strides (CUDA driver API, cuTensorMapEncodeTiled)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Temporary:
    """A tensor that is no input or output of the contract: it lives from the first launch to the
    last."""

    name: str
    shape: tuple[int, ...]
    dtype: Any
    """The numpy (or ml_dtypes) element type."""

    @property
    def stored(self) -> tuple[int, ...]:
        """The extents to allocate on a GPU, of which the tensor is the leading part."""
        return padded(self.shape, self.dtype.itemsize)


def padded(shape: tuple[int, ...], itemsize: int) -> tuple[int, ...]:
    """``shape`` with rows of whole ``ROW_BYTES``; a single row needs no distance to the next."""
    if len(shape) < 2:
        return shape
    unit = max(ROW_BYTES // itemsize, 1)
    return (*shape[:-1], -(-shape[-1] // unit) * unit)


def temporaries(programs: Sequence[Program], problem: Problem) -> tuple[Temporary, ...]:
    """The tensors of ``programs`` that ``problem`` does not hand over, from their annotations.

    The programs fit the problem (:func:`misfits` is empty).
    """
    found: dict[str, Temporary] = {}
    for t in _tensors(programs):
        if t.name not in contract_tensors(problem):
            shape = tuple(d if isinstance(d, int) else problem.dims[d] for d in t.shape)
            found[t.name] = Temporary(name=t.name, shape=shape, dtype=numpy_dtype(t.dtype))
    return tuple(found.values())


def contract_tensors(problem: Problem) -> frozenset[str]:
    """The names of the contract's inputs and outputs.

    Its workspaces are temporaries of a schedule: no one else looks at them.
    """
    return frozenset(spec.name for spec in problem.contract.tensors if spec.role != "workspace")


def misfits(programs: Sequence[Program], problem: Problem) -> Iterator[str]:
    """Why the parameters of ``programs`` do not fit ``problem``, a sentence each."""
    first: dict[str, TensorParam] = {}
    for t in _tensors(programs):
        other = first.setdefault(t.name, t)
        if (t.dtype, t.shape) != (other.dtype, other.shape):
            yield f"two schedules of the file declare tensor {t.name} differently"
        elif t.name in contract_tensors(problem):
            yield from _contract_misfits(t, problem)
        else:
            unknown = [d for d in t.shape if isinstance(d, str) and d not in problem.dims]
            if unknown:
                yield f"temporary {t.name}: the problem has no dimension {', '.join(unknown)}"
    for p in programs:
        for s in p.params:
            if isinstance(s, ScalarParam) and not _is_number(problem, s.name):
                yield f"the problem has no number {s.name} for the scalar parameter"
    for spec in problem.contract.tensors:
        if spec.is_output and spec.name not in first:
            yield f"no schedule has the output {spec.name}"


def _tensors(programs: Sequence[Program]) -> Iterator[TensorParam]:
    for p in programs:
        yield from p.tensors


def _is_number(problem: Problem, name: str) -> bool:
    return isinstance(problem.parameters.get(name, problem.dims.get(name)), int | float)


def _contract_misfits(t: TensorParam, problem: Problem) -> Iterator[str]:
    """Element type, and axes by name: equal extents must not let a transposed operand pass."""
    wanted = problem.dtype_of(t.name)
    if numpy_dtype(t.dtype) != wanted:
        yield f"tensor {t.name} is {t.dtype}, the problem has {wanted}"
    axes, extents = problem.axes_of(t.name), problem.shape_of(t.name)
    same = len(axes) == len(t.shape) and all(
        d in ((axis, extent) if isinstance(d, str) else (extent,))
        for d, axis, extent in zip(t.shape, axes, extents, strict=False)
    )
    if not same:
        theirs = ", ".join(f"{axis}={extent}" for axis, extent in zip(axes, extents, strict=True))
        yield f"tensor {t.name} is [{', '.join(map(str, t.shape))}], the problem has [{theirs}]"
