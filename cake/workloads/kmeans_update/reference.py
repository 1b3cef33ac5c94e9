"""Float64 reference of the k-means update."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import (
    F32_UNIT,
    Array,
    Expected,
    ExpectedExact,
    ExpectedFloat,
    Floats,
    Ints,
    integral,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem

BLOCK_ELEMENTS = 1 << 22  # of x in float64


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``c_new``, ``sums`` and ``counts`` of the clusters ``rows`` (flat over B and K)."""
    x, ids, c_old = inputs["x"], inputs["ids"], inputs["c_old"]
    k, d = problem.dims["K"], problem.dims["D"]
    batches, clusters = np.divmod(rows, k)
    sums, sizes = np.empty((len(rows), d)), np.empty((len(rows), d))
    counts = np.empty(len(rows), dtype=np.int64)
    for batch in np.unique(batches):
        here = np.flatnonzero(batches == batch)
        chosen = clusters[here]
        counts[here] = np.bincount(ids[batch], minlength=k)[chosen]
        sums[here], sizes[here] = _cluster_sums(x[batch], ids[batch], k, chosen)
    bound = sum_bound(sums, sizes, wide(counts)[:, None], integral(x))
    divisor = np.maximum(counts, 1)[:, None]
    means = sums / divisor
    mean_bound = bound / divisor + np.where(np.isfinite(means), 2 * F32_UNIT * np.abs(means), 0.0)
    empty = counts[:, None] == 0
    return {
        "counts": ExpectedExact(value=counts),
        "sums": ExpectedFloat(value=sums, bound=bound),
        "c_new": ExpectedFloat(
            value=np.where(empty, wide(c_old[batches, clusters]), means),
            bound=np.where(empty, 0.0, mean_bound),
        ),
    }


def _cluster_sums(x: Array, ids: Array, k: int, chosen: Ints) -> tuple[Floats, Floats]:
    """Sums of x and of |x| over the members of the ``chosen`` clusters, each (clusters, D)."""
    n, d = x.shape
    sums, sizes = np.empty((len(chosen), d)), np.empty((len(chosen), d))
    step = max(1, BLOCK_ELEMENTS // max(n, 1))
    for start in range(0, d, step):
        block = wide(x[:, start : start + step])
        for column, values in enumerate(block.T, start):
            sums[:, column] = np.bincount(ids, values, minlength=k)[chosen]
            sizes[:, column] = np.bincount(ids, np.abs(values), minlength=k)[chosen]
    return sums, sizes
