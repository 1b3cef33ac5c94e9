"""The outputs of the two passes, which differ in poison and pointers, set against each other."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from cake.judge.arguments import POISONS
from cake.judge.evaluation import Evaluation
from cake.judge.protocol import Array, load_array
from cake.judge.verdict import Finding
from cake.workloads import Case, Comparison, Problem, compare, get, problem

CHECK_FLOPS = 2 * 10**10  # float64 operations that one core does in a second or two
LEAST_ROWS = 64


def against_reference(
    evaluation: Evaluation,
    case: Case,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    seed: int,
) -> Comparison:
    """``outputs`` against the float64 reference, as many rows as are in reach."""
    contract = get(evaluation.workload)
    instance = problem(contract, case.shape, case.dtype)
    return compare(
        contract,
        case.shape,
        case.dtype,
        inputs,
        outputs,
        max_rows=evaluation.max_rows or _rows_in_reach(instance),
        seed=seed,
    )


def _rows_in_reach(instance: Problem) -> int:
    """How many rows the reference may compute with ``CHECK_FLOPS`` operations."""
    return max(LEAST_ROWS, CHECK_FLOPS * instance.rows // max(instance.flops, 1))


def load_outputs(instance: Problem, folder: Path) -> dict[str, Array]:
    """The outputs that the child left in ``folder``; raises :class:`ProtocolError`."""
    return {
        spec.name: load_array(
            folder, spec.name, instance.shape_of(spec.name), instance.dtype_of(spec.name)
        )
        for spec in instance.contract.outputs
    }


def compare_passes(
    instance: Problem, first: Mapping[str, Array], second: Mapping[str, Array]
) -> list[Finding]:
    """Elements that neither pass wrote, and differences that the contract does not admit."""
    findings = []
    for spec in instance.contract.outputs:
        itemsize = instance.dtype_of(spec.name).itemsize
        passes = [
            array.reshape(-1).view(np.uint8) for array in (first[spec.name], second[spec.name])
        ]
        rows = [flat.reshape(-1, itemsize) for flat in passes]
        untouched = np.logical_and(
            *((row == poison).all(axis=1) for row, poison in zip(rows, POISONS, strict=True))
        )
        shape = instance.shape_of(spec.name)
        if untouched.any():
            message = f"{_count(untouched, shape)} never written"
            findings.append(Finding(kind="unwritten", tensor=spec.name, message=message))
        differs = (rows[0] != rows[1]).any(axis=1) & ~untouched
        if differs.any() and instance.contract.determinism == "bitwise":
            message = f"{_count(differs, shape)} different from one run to the next"
            findings.append(Finding(kind="nondeterministic", tensor=spec.name, message=message))
    return findings


def _count(mask: Array, shape: tuple[int, ...]) -> str:
    index = [int(i) for i in np.unravel_index(int(mask.argmax()), shape)]
    return f"{int(mask.sum())} of {mask.size} elements, the first at {index}, were"
