"""Float64 reference of the matrix product."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import (
    Array,
    Expected,
    ExpectedFloat,
    Floats,
    Ints,
    integral,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem

BLOCK_ELEMENTS = 1 << 22  # of b in float64, so that large weights are converted by parts


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``d`` at ``rows`` (flat over B and M), float64, with the f32 bound of every element."""
    m, n, k = (problem.dims[name] for name in "MNK")
    kn = problem.parameters["b_layout"] == "kn"
    a = inputs["a"] if "B" in problem.dims else inputs["a"][None]
    b = inputs["b"] if "B" in problem.dims else inputs["b"][None]
    value, magnitude = np.empty((len(rows), n)), np.empty((len(rows), n))
    batches, places = np.divmod(rows, max(m, 1))
    for batch in np.unique(batches):
        here = np.flatnonzero(batches == batch)
        right = b[batch].T if kn else b[batch]
        _product(a[batch, places[here]], right, value, magnitude, here)
    exact = integral(a[batches, places], inputs["b"])
    return {"d": ExpectedFloat(value=value, bound=sum_bound(value, magnitude, k, exact))}


def _product(a: Array, b: Array, value: Floats, magnitude: Floats, at: Ints) -> None:
    """Write a b^T and |a| |b|^T into the rows ``at`` of both results, by blocks of b's rows."""
    left = wide(a)
    step = max(1, BLOCK_ELEMENTS // max(b.shape[1], 1))
    for start in range(0, b.shape[0], step):
        right = wide(b[start : start + step])
        columns = slice(start, start + step)
        with np.errstate(invalid="ignore", over="ignore"):
            value[at, columns] = left @ right.T
            # The bound needs no more than a few digits.
            sizes = np.abs(left).astype(np.float32) @ np.abs(right).astype(np.float32).T
        magnitude[at, columns] = sizes
