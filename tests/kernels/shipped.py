"""Run a shipped schedule against its contract: simulated here, launched where there is a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from cake.kernels import (
    Bound,
    ScheduleFile,
    bind,
    encode_meta,
    poisoned,
    schedules,
    simulate_schedule,
    with_meta,
)
from cake.workloads import Comparison, Problem, compare, generate, get, problem

TARGET = "sm_90a"


def schedule(workload: str, name: str = TARGET) -> ScheduleFile:
    """The workload's schedule file of that name."""
    return next(f for f in schedules(workload, TARGET) if f.name == name)


def bound(
    workload: str, shape: Mapping[str, Any], dtype: str, *, file: str = TARGET, **meta: Any
) -> Bound:
    """A schedule file on a problem. Raises ``Misfit``."""
    return _bound(workload, tuple(shape.items()), dtype, file, tuple(meta.items()))


@cache
def _bound(
    workload: str,
    shape: tuple[tuple[str, Any], ...],
    dtype: str,
    file: str,
    meta: tuple[tuple[str, Any], ...],
) -> Bound:
    instance = problem(get(workload), dict(shape), dtype)
    return bind(schedule(workload, file), instance, dict(meta))


def simulated(
    workload: str,
    shape: Mapping[str, Any],
    dtype: str = "bf16",
    family: str = "normal",
    order: str = "late",
    seed: int = 1,
    *,
    file: str = TARGET,
    **meta: Any,
) -> Comparison:
    """Simulate on one input family and compare with the reference; fails on any finding."""
    contract = get(workload)
    instance = problem(contract, shape, dtype)
    inputs = generate(contract, shape, dtype, family, seed)
    outputs = poisoned_outputs(instance)
    programs = bound(workload, shape, dtype, file=file, **meta).programs
    findings = simulate_schedule(programs, instance, {**inputs, **outputs}, order=order, seed=seed)
    assert not findings, "; ".join(f"{d.code}: {d.message}" for d in findings)
    return compare(contract, shape, dtype, inputs, results(instance, outputs))


def poisoned_outputs(instance: Problem) -> dict[str, Any]:
    """Everything that kernels write, full of NaN or -1."""
    return {
        spec.name: poisoned(instance.shape_of(spec.name), instance.dtype_of(spec.name))
        for spec in instance.contract.tensors
        if not spec.is_input
    }


def results(instance: Problem, arrays: Mapping[str, Any]) -> dict[str, Any]:
    return {spec.name: arrays[spec.name] for spec in instance.contract.outputs}


class Launcher:
    """A schedule built for one problem, to be launched on the GPU."""

    def __init__(
        self,
        workload: str,
        shape: Mapping[str, Any],
        dtype: str = "bf16",
        *,
        file: str = TARGET,
        **meta: Any,
    ) -> None:
        from cake.judge import Candidate
        from cake.judge.ir_runner import RUNNER, IrRunner

        self.problem = problem(get(workload), shape, dtype)
        text = with_meta(schedule(workload, file).text, {}, TARGET)
        candidate = Candidate(runner=RUNNER, entry=file, meta=encode_meta(meta), text=text)
        self._runner = IrRunner(candidate, self.problem)

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The outputs for inputs that are torch tensors on the GPU. Launches twice, so that the
        second time temporaries hold what the first left there."""
        outputs: dict[str, Any] = {}
        for _ in range(2):
            outputs = on_gpu(poisoned_outputs(self.problem))
            self._runner.run({**inputs, **outputs})
        return results(self.problem, outputs)

    def judged(self, family: str, seed: int = 2) -> Comparison:
        """Launch on one input family and compare with the reference."""
        contract, dims, dtype = self.problem.contract, self.problem.dims, self.problem.dtype
        shape = {**dims, **self.problem.parameters}
        inputs = generate(contract, shape, dtype, family, seed)
        outputs = from_gpu(self.problem, self(on_gpu(inputs)))
        return compare(contract, shape, dtype, inputs, outputs)


def on_gpu(arrays: Mapping[str, Any]) -> dict[str, Any]:
    """numpy arrays as torch tensors on the GPU."""
    from cake.judge.baselines import as_torch

    return {name: tensor.cuda() for name, tensor in as_torch(arrays).items()}


def from_gpu(instance: Problem, tensors: Mapping[str, Any]) -> dict[str, Any]:
    """torch tensors as numpy arrays of the contract's types."""
    import torch

    def numpy(name: str, tensor: Any) -> Any:
        bits = tensor.view(getattr(torch, f"int{8 * tensor.element_size()}"))
        array: Any = np.asarray(bits.cpu())
        return array.view(instance.dtype_of(name))

    return {name: numpy(name, tensor) for name, tensor in tensors.items()}
