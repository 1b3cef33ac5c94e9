"""Ratios of paired times with intervals of confidence. No GPU, no files: numbers alone.

Candidate and baseline alternate in the order ABBA, so two pairs stand for one *block*, in which
drift that is linear in time and any advantage of being first cancel: its figure is the mean of both
log ratios. The estimate is the median over blocks. The interval is the percentile bootstrap over
blocks, drawn within each process (Efron and Tibshirani, "An Introduction to the Bootstrap", 1993,
chapters 8 and 13), widened to the medians of the single processes: what differs between them no
sample within one shows. The same seed always gives the same interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL = 0.99
"""Of every interval: a table of forty rows should not hold two false winners."""
RESAMPLES = 2000
LEAST_BLOCKS = 8
"""With fewer blocks a bootstrap of the median says more than the data do."""
_SEED = 20251


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A ratio of times with the ends of its interval at ``level``."""

    ratio: float
    low: float
    high: float
    level: float = LEVEL

    def contains(self, ratio: float) -> bool:
        """Whether ``ratio`` is compatible with the data."""
        return self.low <= ratio <= self.high


def block_ratios(numerator: Sequence[float], denominator: Sequence[float]) -> Floats:
    """Log ratios of ABBA blocks of paired samples, in milliseconds or any one unit.

    A last pair without a partner is a block of its own. Raises ``ValueError`` for different
    lengths and for times that are not positive.
    """
    top, bottom = (np.asarray(side, dtype=np.float64) for side in (numerator, denominator))
    if top.shape != bottom.shape:
        raise ValueError(f"{top.size} and {bottom.size} samples do not pair")
    if not (np.all(top > 0) and np.all(bottom > 0)):
        raise ValueError("every time has to be positive")
    logs = np.log(top / bottom)
    whole = logs[: len(logs) // 2 * 2].reshape(-1, 2).mean(axis=1)
    return np.concatenate([whole, logs[len(whole) * 2 :]])


def interval(processes: Sequence[Floats], level: float = LEVEL) -> Interval | None:
    """The ratio over the blocks of all processes; None for fewer than :data:`LEAST_BLOCKS`."""
    blocks = np.concatenate([*processes, np.empty(0)])
    if len(blocks) < LEAST_BLOCKS:
        return None
    medians = [float(np.median(process)) for process in processes if len(process)]
    found = _interval(float(np.median(blocks)), _resampled(processes, _SEED), level)
    return replace(
        found,
        low=min(found.low, float(np.exp(min(medians)))),
        high=max(found.high, float(np.exp(max(medians)))),
    )


def compare_intervals(
    first: Sequence[Floats], second: Sequence[Floats], level: float = LEVEL
) -> Interval | None:
    """How the ratio of ``first`` stands to that of ``second``, which were measured apart.

    Both are against the same baseline; their blocks do not pair, so they are drawn independently.
    """
    sides = [np.concatenate([*side, np.empty(0)]) for side in (first, second)]
    if min(map(len, sides)) < LEAST_BLOCKS:
        return None
    estimate = float(np.median(sides[0]) - np.median(sides[1]))
    spread = _resampled(first, _SEED) - _resampled(second, _SEED + 1)
    return _interval(estimate, spread, level)


def noise_floor(same: Interval | None) -> float:
    """How far from 1 a ratio of a thing to itself may lie, from an A/A measurement."""
    return 0.0 if same is None else max(same.high - 1.0, 1.0 - same.low, 0.0)


def is_faster(found: Interval | None, floor: float) -> bool:
    """Whether a speed-up is a win: its whole interval lies above the noise floor."""
    return found is not None and found.low > 1.0 + floor


def _interval(estimate: float, medians: Floats, level: float) -> Interval:
    tail = (1.0 - level) / 2.0
    low, high = np.quantile(medians, [tail, 1.0 - tail])
    return Interval(
        ratio=float(np.exp(estimate)),
        low=float(np.exp(min(low, estimate))),
        high=float(np.exp(max(high, estimate))),
        level=level,
    )


def _resampled(processes: Sequence[Floats], seed: int) -> Floats:
    """Medians of resamples, each with as many blocks of every process as there were."""
    rng = np.random.default_rng(seed)
    drawn = [p[rng.integers(0, len(p), (RESAMPLES, len(p)))] for p in processes if len(p)]
    medians: Floats = np.median(np.concatenate(drawn, axis=1), axis=1)
    return medians
