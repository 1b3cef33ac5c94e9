"""All kernels of a schedule on the CPU, one after another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from cake.diag import Diagnostic
from cake.ir.nodes import TensorRef, walk_calls
from cake.ir.program import Program, ScalarParam
from cake.kernels.tensors import temporaries
from cake.ops.base import Access, lookup
from cake.simulate.orders import Order
from cake.simulate.run import simulate
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
) -> tuple[Diagnostic, ...]:
    """Simulate programs that fit ``problem`` in launch order, until one has findings.

    ``tensors`` holds the contract's tensors by name as numpy arrays, written in place; temporaries
    are made here. Reading what no kernel has written is a finding.
    """
    arrays = dict(tensors)
    for t in temporaries(programs, problem):
        arrays[t.name] = poisoned(t.shape, t.dtype)
    unwritten = set(arrays) - {spec.name for spec in problem.contract.inputs}
    for program in programs:
        run = simulate(
            program,
            {t.name: arrays[t.name] for t in program.tensors},
            scalars(program, problem),
            outputs=unwritten & {t.name for t in program.tensors},
            order=order,
            seed=seed,
        )
        if not run.ok:
            return run.findings
        unwritten -= set(written_tensors(program))
    return ()


def scalars(program: Program, problem: Problem) -> dict[str, int | float]:
    """The scalar parameters of a program, by name, from the problem."""
    numbers = {**problem.parameters, **problem.dims}
    return {
        p.name: value
        for p in program.params
        if isinstance(p, ScalarParam) and isinstance(value := numbers[p.name], int | float)
    }


def written_tensors(program: Program) -> Iterator[str]:
    """Names of the global tensors that a program writes or updates."""
    for role in program.roles:
        for call in walk_calls(role.body):
            primitive = lookup(call.op)
            for effect in () if primitive is None else primitive.effects(call):
                if isinstance(effect, Access) and effect.action != "read":
                    place = call.args[effect.operand]
                    if isinstance(place, TensorRef):
                        yield place.tensor


def poisoned(shape: tuple[int, ...], dtype: Any) -> Any:
    """A numpy array that is all poison."""
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    return np.full(size, POISON, np.uint8).view(dtype).reshape(shape)
