"""Float64 reference of the softmax."""

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

# Roundings outside the sum and the exponent: two ex2.approx (its own and the sum's; PTX ISA: at
# most 2 units of 2^-23 each), one approximate division (2 units of 2^-23), one product.
OTHER_ROUNDINGS = 14


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``y`` at ``rows`` in float64, with the f32 bound of every element."""
    x = wide(inputs["x"][rows])
    n = problem.dims["N"]
    with np.errstate(invalid="ignore", over="ignore"):
        top = x.max(axis=1, keepdims=True)
        drop = x - top
        powers = np.exp(drop)
        total = powers.sum(axis=1, keepdims=True)
        value = powers / total
        # An exponent that is off by e makes the power off by the factor 1 + e. It is rounded
        # after the difference and after the change to base 2, and the maximum once as well.
        exponent = F32_UNIT * (4 * np.abs(drop) + 4 * np.abs(top))
        relative = exponent + sum_bound(total, total, n, exact=False) / total
        bound = value * (relative + OTHER_ROUNDINGS * F32_UNIT)
        bound += np.where(value > 0, F32_TINY, 0.0)
    # Powers of -infinity are zero without error; a NaN admits nothing else.
    bound = np.where(np.isfinite(bound), bound, 0.0)
    return {"y": ExpectedFloat(value=value, bound=bound)}
