"""Float64 reference of attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np

from cake.workloads.expected import (
    F32_UNIT,
    WALK,
    Array,
    Expected,
    ExpectedFloat,
    Floats,
    Ints,
    epsilon,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem

# Roundings of one row beside sums and exponents: a division, the product with it, a factor for each
# tile of keys that was rescaled (tiles are at least 64 keys, and factors of 1 are exact).
OTHER_ROUNDINGS = 16


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``o`` at ``rows`` (flat over B, H and Lq) in float64, with the bound of every element."""
    lq, heads = max(problem.dims["Lq"], 1), max(problem.dims["H"], 1)
    sequences, places = np.divmod(rows, lq)
    value = np.zeros((len(rows), problem.dims["D"]))
    bound = np.zeros_like(value)
    for sequence in np.unique(sequences):
        here = np.flatnonzero(sequences == sequence)
        batch, head = divmod(int(sequence), heads)
        shared = head // (heads // problem.dims["Hkv"])
        q = wide(inputs["q"][batch, head, places[here]])
        k, v = (wide(inputs[name][batch, shared]) for name in ("k", "v"))
        value[here], bound[here] = _attention(problem, q, k, v, places[here])
    return {"o": ExpectedFloat(value=value, bound=bound)}


def _attention(
    problem: Problem, q: Floats, k: Floats, v: Floats, places: Ints
) -> tuple[Floats, Floats]:
    """Outputs of queries ``q``, number ``places`` of their sequence, and their bounds."""
    scale = 1 / np.sqrt(problem.dims["D"])
    scores = scale * (q @ k.T)
    # First order in each score's error: its products' sum, and changes of scale and base.
    error = sum_bound(scores, scale * (np.abs(q) @ np.abs(k).T), problem.dims["D"], exact=False)
    hidden = _hidden(problem, places)
    scores = np.where(hidden, -np.inf, scores)
    with np.errstate(invalid="ignore", over="ignore"):
        top = scores.max(axis=1, keepdims=True, initial=-np.inf)
        top = np.where(np.isneginf(top), 0.0, top)
        powers = np.where(hidden, 0.0, np.exp(scores - top))
        total = powers.sum(axis=1, keepdims=True)
        weights = powers / np.where(total == 0, 1.0, total)
        distance = np.where(hidden, 0.0, np.abs(scores) + np.abs(top))
        error = np.expm1(np.where(hidden, 0.0, error + 8 * F32_UNIT * distance))
        value = weights @ v
        bound = _bound(problem, value, weights, total, error, v)
    return value, np.where(np.isfinite(bound), bound, 0.0)


def _hidden(problem: Problem, places: Ints) -> Any:
    """Which keys each query does not see."""
    lq, lk = problem.dims["Lq"], problem.dims["Lk"]
    if not problem.parameters["causal"]:
        return np.zeros((len(places), lk), dtype=bool)
    return np.arange(lk) > places[:, None] + (lk - lq)


def _bound(
    problem: Problem, value: Floats, weights: Floats, total: Floats, error: Floats, v: Floats
) -> Floats:
    """What wrong exponents, powers rounded to T, and f32 sums may add."""
    size = np.abs(v)
    magnitude = weights @ size
    exponents = (weights * error) @ size + (weights * error).sum(1, keepdims=True) * np.abs(value)
    dtype = problem.dtype_of("v")
    unit = epsilon(dtype) / 2
    # Roundings of powers are independent; a few large ones are bounded by their sum.
    walk = WALK * np.sqrt(np.square(weights) @ np.square(v))
    tiny = float(ml_dtypes.finfo(dtype).smallest_subnormal) / 2  # type: ignore[no-untyped-call]
    vanished = tiny * size.sum(0) / np.where(total == 0, np.inf, total)
    powers = unit * np.minimum(walk, magnitude) + vanished
    terms = problem.dims["Lk"]
    sums = sum_bound(value, magnitude, terms, exact=False)
    norm = sum_bound(total, total, terms, exact=False) / np.where(total == 0, 1.0, total)
    other = np.abs(value) * (norm + OTHER_ROUNDINGS * F32_UNIT)
    bound: Floats = exponents + powers + sums + other
    return bound
