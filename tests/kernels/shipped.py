"""Run a shipped schedule against its contract: simulated here, launched where there is a GPU."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cake.kernels import Bound, bind, encode_meta, poisoned, schedules, simulate_schedule, with_meta
from cake.workloads import Comparison, Problem, compare, generate, get, problem

TARGET = "sm_90a"


def bound(workload: str, shape: Mapping[str, Any], dtype: str, **meta: Any) -> Bound:
    """The workload's first schedule for Hopper on a problem. Raises ``Misfit``."""
    return bind(schedules(workload, TARGET)[0], problem(get(workload), shape, dtype), meta)


def simulated(
    workload: str,
    shape: Mapping[str, Any],
    dtype: str = "bf16",
    family: str = "normal",
    order: str = "late",
    seed: int = 1,
    **meta: Any,
) -> Comparison:
    """Simulate on one input family and compare with the reference; fails on any finding."""
    contract = get(workload)
    instance = problem(contract, shape, dtype)
    inputs = generate(contract, shape, dtype, family, seed)
    outputs = poisoned_outputs(instance)
    programs = bound(workload, shape, dtype, **meta).programs
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


def launched(
    workload: str, shape: Mapping[str, Any], dtype: str, inputs: Mapping[str, Any], **meta: Any
) -> dict[str, Any]:
    """Launch on the GPU; ``inputs`` are torch tensors there. Returns the outputs, twice launched:
    a second run on the first one's temporaries must give the same."""
    from cake.judge import Candidate
    from cake.judge.baselines import as_torch
    from cake.judge.ir_runner import RUNNER, IrRunner

    instance = problem(get(workload), shape, dtype)
    file = schedules(workload, TARGET)[0]
    text = with_meta(file.text, {}, file.target)
    candidate = Candidate(runner=RUNNER, entry=file.name, meta=encode_meta(meta), text=text)
    runner = IrRunner(candidate, instance)
    outputs = {}
    for _ in range(2):
        made = as_torch(poisoned_outputs(instance))
        outputs = {name: tensor.cuda() for name, tensor in made.items()}
        runner.run({**inputs, **outputs})
    return results(instance, outputs)


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
