"""The float64 references of the workloads, evaluated by rows and within bounded memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from importlib import import_module

import numpy as np

from cake.codegen.hostexpr import HostExpr
from cake.workloads.contract import Contract, Shape
from cake.workloads.expected import Array, Expected, ExpectedFloat, Ints, rounded
from cake.workloads.problem import Problem, problem

# (problem, inputs, flat row numbers) -> output name -> expectation, first axis: those rows
Reference = Callable[[Problem, Mapping[str, Array], Ints], Mapping[str, Expected]]

CHUNK_ELEMENTS = 1 << 21  # 16 MiB of float64 for each temporary of a chunk


def row_order(instance: Problem, output: str) -> list[int]:
    """The axes of ``output``, those of the contract's rows first."""
    axes = instance.axes_of(output)
    rows = [axes.index(name) for name in instance.contract.row_dims if name in axes]
    return rows + [axis for axis in range(len(axes)) if axis not in rows]


def rows_first(instance: Problem, output: str, array: Array) -> Array:
    """``array``, an ``output``, as a matrix: the contract's rows by everything else."""
    columns = array.size // max(instance.rows, 1)
    return array.transpose(row_order(instance, output)).reshape(instance.rows, columns)


def evaluate(
    instance: Problem, inputs: Mapping[str, Array], rows: Ints
) -> Iterator[tuple[Ints, Mapping[str, Expected]]]:
    """The expectations of ``rows`` (flat numbers over the contract's ``row_dims``), in chunks.

    Every expected array has one row per number in the chunk and the output's remaining axes
    flattened behind it.
    """
    module = import_module(f"cake.workloads.{instance.contract.name}.reference")
    reference: Reference = module.reference
    row_elements = max(1, HostExpr(instance.contract.row_elements).evaluate(instance.env()))
    step = max(1, CHUNK_ELEMENTS // row_elements)
    for start in range(0, len(rows), step):
        chunk = rows[start : start + step]
        yield chunk, reference(instance, inputs, chunk)


def reference_outputs(
    contract: Contract, shape: Shape, dtype: str, inputs: Mapping[str, Array]
) -> dict[str, Array]:
    """All outputs, computed in float64 and rounded once to their dtypes."""
    instance = problem(contract, shape, dtype)
    parts: dict[str, list[Array]] = {spec.name: [] for spec in contract.outputs}
    for _, expected in evaluate(instance, inputs, np.arange(instance.rows)):
        for name, part in expected.items():
            kind = instance.dtype_of(name)
            value = rounded(part.value, kind) if isinstance(part, ExpectedFloat) else part.value
            parts[name].append(value.astype(kind))
    return {name: _assembled(instance, name, part) for name, part in parts.items()}


def _assembled(instance: Problem, name: str, parts: list[Array]) -> Array:
    """An output from its rows."""
    made = np.empty(instance.shape_of(name), instance.dtype_of(name))
    if parts:
        place = made.transpose(row_order(instance, name))
        place[...] = np.concatenate(parts).reshape(place.shape)
    return made
