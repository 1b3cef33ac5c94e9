"""The runner of Cake IR candidates: launches their kernels on a GPU, simulates them on the CPU.

Named in ``Evaluation.plugins`` as ``cake.judge.ir_runner``; its name as a runner is ``ir``. All
schedules of the candidate's text run in source order. Meta parameters that the candidate does not
give are bound to the problem (:func:`cake.kernels.bind`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from cake.codegen.cache import KernelCache
from cake.codegen.compile import compile_program
from cake.diag import CakeError, Diagnostic
from cake.ir.program import Program
from cake.judge.candidate import BuildError, Candidate, Refused
from cake.judge.device_cuda import CudaArray, CudaBuffer
from cake.judge.runners import register
from cake.kernels import (
    Bound,
    Misfit,
    ScheduleFile,
    Temporary,
    bind,
    decode_meta,
    meta_domains,
    scalars,
    simulate_schedule,
    temporaries,
)
from cake.runtime.arrays import adapter_of
from cake.runtime.driver import Device, device
from cake.runtime.kernel import LoadedKernel, architecture
from cake.workloads import Problem

PLUGIN = __name__
RUNNER = "ir"


@register(RUNNER)
class IrRunner:
    """A candidate bound to one problem; its kernels are built when it first meets a GPU."""

    def __init__(self, candidate: Candidate, problem: Problem) -> None:
        self._problem = problem
        self._programs = _bound(candidate, problem).programs
        self._launches: list[_Launch] = []
        self._temporaries: dict[str, Any] = {}

    def run(self, tensors: Mapping[str, Any]) -> None:
        """Compute once on numpy arrays or on arrays in device memory."""
        if any(isinstance(array, np.ndarray) for array in tensors.values()):
            self._simulate(tensors)
            return
        if not self._launches:
            self._load(next(iter(tensors.values())))
        arrays = {**tensors, **self._temporaries}
        for launch in self._launches:
            launch(arrays)

    def _simulate(self, tensors: Mapping[str, Any]) -> None:
        findings = simulate_schedule(self._programs, self._problem, tensors)
        if findings:
            raise RuntimeError("; ".join(f"{d.code}: {d.message}" for d in findings))

    def _load(self, like: Any) -> None:
        """Build and load the kernels, and make room for temporaries where ``like`` lies."""
        for t in temporaries(self._programs, self._problem):
            self._temporaries[t.name] = _allocate(t, like)
        cache = KernelCache(warn=_ignore)
        here = device(max(adapter_of(like).view(like).device, 0))
        self._launches = [_Launch(p, self._problem, cache, here) for p in self._programs]


class _Launch:
    """One kernel of a schedule with its scalar arguments."""

    def __init__(
        self, program: Program, problem: Problem, cache: KernelCache, here: Device
    ) -> None:
        arch = architecture(program.target, here)
        compiled = compile_program(program, cache=cache, arch=arch)
        self._kernel = LoadedKernel(compiled.build.cubin, compiled.abi)
        self._tensors = tuple(t.name for t in program.tensors)
        self._scalars = scalars(program, problem)

    def __call__(self, arrays: Mapping[str, Any]) -> None:
        self._kernel.launch({**{name: arrays[name] for name in self._tensors}, **self._scalars})


def _bound(candidate: Candidate, problem: Problem) -> Bound:
    path = Path(candidate.path or f"{candidate.entry}.py")
    file = ScheduleFile(
        name=candidate.entry, path=path, target=None, written_for=None, text=candidate.text
    )
    try:
        return bind(file, problem, decode_meta(candidate.meta, meta_domains(file)))
    except Misfit as reason:
        raise Refused(str(reason)) from None
    except CakeError as errors:
        raise BuildError(str(errors)) from None


def _allocate(t: Temporary, like: Any) -> Any:
    """An array of the same library and device as ``like``; its contents are arbitrary.

    Its rows are padded, so that TMA reaches them whatever their length.
    """
    if hasattr(like, "new_empty"):
        from cake.judge.device_torch import torch_dtype

        stored = like.new_empty(t.stored, dtype=torch_dtype(t.dtype))
        return stored[tuple(slice(extent) for extent in t.shape)]
    size = math.prod(t.stored) * t.dtype.itemsize
    return CudaArray(CudaBuffer(size), 0, t.shape, t.dtype, stored=t.stored)


def _ignore(finding: Diagnostic) -> None:
    """A cache that cannot be used costs time alone."""
