"""All kernels of a schedule on the CPU, one after another."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from cake.diag import Diagnostic
from cake.ir.program import Program, ScalarParam
from cake.kernels.tensors import temporaries
from cake.simulate import ArithmeticName, Options, Order, simulate_chain
from cake.workloads import Problem

POISON = 0xFF
"""The byte that fills what no kernel has written: a NaN of every float type, -1 of an integer."""


def simulate_schedule(
    programs: Sequence[Program],
    problem: Problem,
    tensors: Mapping[str, Any],
    *,
    order: str | Order = "late",
    seed: int = 0,
    arithmetic: ArithmeticName = "float",
) -> tuple[Diagnostic, ...]:
    """Simulate programs that fit ``problem`` in launch order, until one has findings.

    ``tensors`` holds the contract's tensors by name as numpy arrays, written in place; temporaries
    are made here. Reading what no kernel has written is a finding, and so is an output that is not
    written in whole.
    """
    arrays = dict(tensors)
    for t in temporaries(programs, problem):
        arrays[t.name] = poisoned(t.shape, t.dtype)
    inputs = {spec.name for spec in problem.contract.inputs}
    outputs = {spec.name for spec in problem.contract.outputs} - inputs
    result = simulate_chain(
        programs,
        arrays,
        {name: value for program in programs for name, value in scalars(program, problem).items()},
        outputs=outputs,
        temporaries=arrays.keys() - inputs - outputs,
        options=Options(order=order, seed=seed, arithmetic=arithmetic),
    )
    return result.findings


def scalars(program: Program, problem: Problem) -> dict[str, int | float]:
    """The scalar parameters of a program, by name, from the problem."""
    numbers = {**problem.parameters, **problem.dims}
    return {
        p.name: value
        for p in program.params
        if isinstance(p, ScalarParam) and isinstance(value := numbers[p.name], int | float)
    }


def poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
    """A numpy array that is all poison."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return np.full(size, POISON, np.uint8).view(dtype).reshape(shape)
