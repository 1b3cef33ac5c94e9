"""What a reference returns for one output, and the model of f32 rounding that it comes with.

The model: ``n`` products or terms are summed in f32 in any order. Their rounding errors behave
like a random walk, so the error stays below ``lambda * sqrt(n) * u * sum|terms|`` except with
probability ``2 n exp(-lambda^2 / 2)`` (Higham and Mary, A new approach to probabilistic rounding
error analysis, SIAM J. Sci. Comput. 41, 2019). Tensor cores truncate instead of rounding
(Fasi, Higham, Mikaitis, Pranesh, Numerical behavior of NVIDIA tensor cores, PeerJ CS 2021),
which biases sums of one sign: that part grows with ``n * u * |sum|``. ``u`` is 2^-24, lambda is
8, so that a false alarm has a probability below 1e-13 per term.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

F32_UNIT = 2.0**-24
F32_TINY = 2.0**-126  # Results below may be flushed to zero (ftz).
EXACT_LIMIT = 2.0**24  # Integers up to here, and their sums, are exact in f32.
WALK = 8.0
BLOCK = 1 << 20  # Elements that are converted to float64 at a time.


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedFloat:
    """``value`` and, per element, the absolute error that f32 arithmetic may have added before
    the result is rounded to the output's dtype. A bound of zero asks for the exact result.
    ``ascending`` rows must not fall from one element to the next."""

    value: Floats
    bound: Floats
    ascending: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedExact:
    """Integers that have to be equal."""

    value: Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedArgmin:
    """Per row the index of the least of ``choices`` scores, lowest index first among equals.

    ``scores(ids)`` returns, for one index per row, the float64 score and its f32 rounding bound;
    the bound of a score that is exact, infinite or NaN is zero.
    """

    value: Ints
    choices: int
    scores: Callable[[Ints], tuple[Floats, Floats]]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedRanked:
    """Per row the indices of the least of ``choices`` scores, best first, lowest index first among
    equals; no index occurs twice.

    ``low`` and ``high`` bound the f32 score that may stand at each rank: the scores of that rank
    when every one is off by its bound downwards, or upwards. ``scores(ids)`` returns, for as many
    indices per row as there are ranks, the float64 scores and their f32 rounding bounds, zero
    where a score is exact or infinite.
    """

    value: Ints
    choices: int
    low: Floats
    high: Floats
    scores: Callable[[Ints], tuple[Floats, Floats]]


Expected = ExpectedFloat | ExpectedExact | ExpectedArgmin | ExpectedRanked


def wide(array: Array) -> Floats:
    """``array`` in float64 (all dtypes of the workloads convert without rounding)."""
    return array.astype(np.float64)


def integral(*arrays: Array) -> bool:
    """Whether every element is a finite integer."""
    for array in arrays:
        flat = array.reshape(-1)
        for start in range(0, flat.size, BLOCK):
            values = wide(flat[start : start + BLOCK])
            if not (np.isfinite(values).all() and (values == np.rint(values)).all()):
                return False
    return True


def sum_bound(value: Floats, magnitude: Floats, terms: int | Floats, exact: bool) -> Floats:
    """The bound for ``value``, a sum of ``terms`` terms whose absolute values add to
    ``magnitude``. ``exact`` says that all terms are integers: the sum is then free of error as
    long as it stays below 2^24. NaN and infinity have the bound 0, they admit no other value."""
    bound = F32_UNIT * (terms * np.abs(value) + WALK * np.sqrt(terms) * magnitude)
    if exact:
        bound = np.where(magnitude < EXACT_LIMIT, 0.0, bound)
    return np.where(np.isfinite(value), bound, 0.0)


@cache
def _float_format(dtype: np.dtype[np.generic]) -> tuple[float, int, int]:
    """The greatest finite number, the least normal exponent and the fraction bits of ``dtype``."""
    info: Any = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(info.max), int(info.minexp), int(info.nmant)


def spacing(value: Floats, dtype: np.dtype[np.generic]) -> Floats:
    """The distance between neighbours of ``dtype`` at ``value`` (one unit in the last place);
    the least subnormal near zero. Infinities and NaN count as the largest finite number."""
    greatest, least_exponent, fraction_bits = _float_format(dtype)
    size = np.minimum(np.nan_to_num(np.abs(value), nan=np.inf), greatest)
    _, exponent = np.frexp(size)
    exponent = np.where(size == 0, least_exponent, np.maximum(exponent - 1, least_exponent))
    step: Floats = np.ldexp(1.0, exponent - fraction_bits)
    return step


def overflow_threshold(dtype: np.dtype[np.generic]) -> float:
    """The least number that rounds to infinity in ``dtype``."""
    greatest = _float_format(dtype)[0]
    return greatest + float(spacing(np.array([greatest]), dtype)[0]) / 2


def epsilon(dtype: np.dtype[np.generic]) -> float:
    """The spacing of ``dtype`` at 1."""
    return float(spacing(np.ones(1), dtype)[0])


def rounded(value: Floats, dtype: np.dtype[np.generic]) -> Floats:
    """``value`` rounded once to ``dtype`` (to nearest, ties to even), in float64.

    The direct cast may pass through f32 and round twice; here a tie that the first rounding made
    up cannot occur, because the scaled significand is an integer.
    """
    step = spacing(value, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        nearest = np.where(np.isfinite(value), np.rint(value / step) * step, value)
        return wide(nearest.astype(dtype))
