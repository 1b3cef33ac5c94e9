"""Float64 reference of RMSNorm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import (
    F32_TINY,
    F32_UNIT,
    Array,
    Expected,
    ExpectedFloat,
    Ints,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem

# Roundings outside the sum: rsqrt.approx (2 units of 2^-23), division by D, the sum with eps,
# eps itself, two products; PTX ISA, rsqrt.approx.f32: maximum relative error 2^-22.9.
OTHER_ROUNDINGS = 12


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``y`` at ``rows`` in float64, with the f32 bound of every element."""
    x, w = wide(inputs["x"][rows]), wide(inputs["w"])
    d = problem.dims["D"]
    with np.errstate(invalid="ignore", over="ignore", divide="ignore"):
        squares = np.square(x).sum(axis=1, keepdims=True)
        scale = 1.0 / np.sqrt(squares / d + problem.number("eps"))
        value = x * scale * w
        sum_error = sum_bound(squares, squares, d, exact=False) / np.where(squares > 0, squares, 1)
        # The root halves the relative error of its argument.
        relative = sum_error / 2 + OTHER_ROUNDINGS * F32_UNIT
        bound = np.abs(value) * relative + np.where(value != 0, F32_TINY, 0.0)
    bound = np.where(np.isfinite(value), bound, 0.0)
    return {"y": ExpectedFloat(value=value, bound=bound)}
