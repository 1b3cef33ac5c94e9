"""The error of every element of an output, and the error that it may have."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np

from cake.workloads.contract import Tolerance
from cake.workloads.expected import (
    Array,
    Expected,
    ExpectedArgmin,
    ExpectedFloat,
    ExpectedRanked,
    Floats,
    Ints,
    epsilon,
    overflow_threshold,
    rounded,
    spacing,
    wide,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementErrors:
    """Arrays of equal shape (rows, elements of a row). An element is wrong where ``error``
    exceeds ``allowed``; ``unit`` is the size of one unit of rounding. ``scale`` and ``bound`` are
    the shares of the output's rounding and of f32 arithmetic in the relative L2 limit."""

    expected: Floats
    got: Floats
    error: Floats
    allowed: Floats
    unit: Floats
    scale: Floats
    bound: Floats

    def squares(self) -> dict[str, float]:
        """Sums of squares over the elements whose expected and actual values are finite."""
        # An infinite error of a finite element is counted as wrong; it would hide the others.
        use = np.isfinite(self.expected) & np.isfinite(self.got) & np.isfinite(self.error)
        return {
            "error": float(np.square(self.error[use]).sum()),
            "value": float(np.square(self.expected[use]).sum()),
            "unit": float(np.square(self.scale[use]).sum()),
            "bound": float(np.square(self.bound[use]).sum()),
        }


def element_errors(
    expected: Expected, got: Array, dtype: np.dtype[np.generic], tolerance: Tolerance
) -> ElementErrors:
    """The errors of ``got`` (rows, elements), an output of ``dtype``, against ``expected``."""
    if isinstance(expected, ExpectedArgmin):
        return _argmin_errors(expected, got)
    if isinstance(expected, ExpectedRanked):
        return _ranked_errors(expected, got)
    if isinstance(expected, ExpectedFloat):
        return _float_errors(expected, got, dtype, tolerance)
    value = wide(expected.value).reshape(got.shape)
    zero, one = np.zeros(got.shape), np.ones(got.shape)
    error = np.abs(wide(got) - value)
    return ElementErrors(
        expected=value, got=wide(got), error=error, allowed=zero, unit=one, scale=zero, bound=zero
    )


def _float_errors(
    expected: ExpectedFloat, got: Array, dtype: np.dtype[np.generic], tolerance: Tolerance
) -> ElementErrors:
    value = expected.value.reshape(got.shape)
    bound = expected.bound.reshape(got.shape)
    actual = wide(got)
    unit = spacing(value, dtype)
    nearest = rounded(value, dtype)
    exact = bound == 0
    with np.errstate(invalid="ignore"):
        error = np.abs(actual - np.where(exact, nearest, value))
    error = np.where(
        np.isposinf(actual) | np.isneginf(actual), _overflow(value, actual, dtype), error
    )
    error = np.where((actual == nearest) & (exact | ~np.isfinite(value)), 0.0, error)
    error = np.where(np.isnan(value) & np.isnan(actual), 0.0, error)
    error = np.where(np.isnan(error), inf, error)
    if expected.ascending:
        error[:, 1:] = np.where(actual[:, 1:] < actual[:, :-1], inf, error[:, 1:])
    scale = np.maximum(epsilon(dtype) * np.abs(np.nan_to_num(value)), unit)
    return ElementErrors(
        expected=value,
        got=actual,
        error=error,
        allowed=np.where(exact, 0.0, tolerance.output_ulps * unit + bound),
        unit=unit,
        scale=scale,
        bound=bound,
    )


def _overflow(value: Floats, actual: Floats, dtype: np.dtype[np.generic]) -> Floats:
    """The error of an infinite result: how far the expected value is from the least number that
    rounds to that infinity."""
    distance = np.maximum(overflow_threshold(dtype) - np.abs(value), 0.0)
    return np.where(np.sign(value) == np.sign(actual), distance, inf)


def _ranked_errors(expected: ExpectedRanked, got: Array) -> ElementErrors:
    """A score too far from that of its rank; infinity for an index out of range or seen before."""
    ids = got.astype(np.int64)
    best, _ = expected.scores(expected.value)
    valid = (ids >= 0) & (ids < expected.choices)
    score, bound = expected.scores(np.where(valid, ids, expected.value))
    unit = spacing(best, np.dtype(np.float32))
    with np.errstate(invalid="ignore"):
        error = np.where(score == best, 0.0, np.abs(score - best))
        slack = np.where(score > best, expected.high - best, best - expected.low)
    allowed = np.where(np.isfinite(slack), slack, 0.0) + bound
    # Without rounding there is one right answer, ties included.
    error = np.where((allowed == 0) & (ids != expected.value), np.maximum(error, unit), error)
    error = np.where(valid & ~_repeated(ids) & ~np.isnan(error), error, inf)
    zero = np.zeros(got.shape)
    return ElementErrors(
        expected=wide(expected.value),
        got=wide(ids),
        error=error,
        allowed=allowed,
        unit=unit,
        scale=zero,
        bound=zero,
    )


def _repeated(ids: Ints) -> Any:
    """Which elements repeat one further left in their row."""
    order = np.argsort(ids, axis=1, kind="stable")
    ordered = np.take_along_axis(ids, order, axis=1)
    repeated = np.zeros(ids.shape, dtype=bool)
    np.put_along_axis(repeated, order[:, 1:], ordered[:, 1:] == ordered[:, :-1], axis=1)
    return repeated


def _argmin_errors(expected: ExpectedArgmin, got: Array) -> ElementErrors:
    ids = got.reshape(-1).astype(np.int64)
    best, best_bound = expected.scores(expected.value)
    # An index out of range has no score; the best one's stands in, and the error says infinity.
    valid = (ids >= 0) & (ids < expected.choices)
    score, score_bound = expected.scores(np.where(valid, ids, expected.value))
    allowed = best_bound + score_bound
    unit = spacing(best, np.dtype(np.float32))
    with np.errstate(invalid="ignore"):
        gap = np.where(score == best, 0.0, score - best)
    # Without rounding there is one right answer, ties included.
    gap = np.where(allowed == 0, np.maximum(gap, unit), gap)
    error = np.where(ids == expected.value, 0.0, gap)
    error = np.where(valid & ~np.isnan(error), error, inf)
    column = (len(ids), 1)
    zero = np.zeros(column)
    return ElementErrors(
        expected=wide(expected.value).reshape(column),
        got=wide(ids).reshape(column),
        error=error.reshape(column),
        allowed=allowed.reshape(column),
        unit=unit.reshape(column),
        scale=zero,
        bound=zero,
    )
