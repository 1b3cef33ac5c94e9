"""Whether the GPU takes the tensors of a problem as they lie in memory, before there is a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from cake.codegen.cuda import emit_program
from cake.diag import CakeError
from cake.ir.program import Program, TensorParam
from cake.kernels.simulation import scalars
from cake.kernels.tensors import ROW_BYTES, contract_tensors, padded
from cake.runtime.arrays import ANYWHERE, ArrayView
from cake.runtime.binding import Binder
from cake.runtime.driver import Device
from cake.workloads import Problem

_SOME_DEVICE = Device(
    ordinal=0,
    name="",
    capability=(0, 0),
    sms=1,
    sm_clock_khz=1,
    memory_clock_khz=1,
    memory_bytes=1,
    l2_bytes=1,
    smem_per_block_bytes=1,
)
"""Layouts do not depend on it, but grids may."""


def refused_layouts(program: Program, problem: Problem) -> Iterator[str]:
    """What a launch on contiguous tensors would refuse, in the words of the runtime.

    The program fits the problem and its guards hold. Temporaries are stored with padded rows.
    """
    own = [t for t in program.tensors if t.name in contract_tensors(problem)]
    if all(len(t.shape) < 2 or _row_bytes(t, problem) % ROW_BYTES == 0 for t in own):
        return
    views = {t.name: _view(t, problem, temporary=t not in own) for t in program.tensors}
    try:
        binder = Binder(emit_program(program).abi)
        binder.bind(views, scalars(program, problem), _SOME_DEVICE)
    except CakeError as refusal:
        yield from (d.message for d in refusal.diagnostics)


def _extents(t: TensorParam, problem: Problem) -> list[int]:
    return [d if isinstance(d, int) else problem.dims[d] for d in t.shape]


def _row_bytes(t: TensorParam, problem: Problem) -> int:
    return _extents(t, problem)[-1] * t.dtype.bytes


def _view(t: TensorParam, problem: Problem, *, temporary: bool) -> ArrayView:
    shape = tuple(_extents(t, problem))
    stored = padded(shape, t.dtype.bytes) if temporary else shape
    return ArrayView(
        pointer=256,
        shape=shape,
        strides=tuple(prod(stored[axis + 1 :]) for axis in range(len(shape))),
        dtype=t.dtype.name,
        device=ANYWHERE,
        readonly=False,
    )
