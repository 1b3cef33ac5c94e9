"""Float64 reference of the k-means assignment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import (
    Array,
    Expected,
    ExpectedArgmin,
    Floats,
    Ints,
    integral,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``ids`` at ``rows`` (flat over B and N) by the argmin of the float64 scores."""
    x, c = inputs["x"], inputs["c"]
    batches, places = np.divmod(rows, max(problem.dims["N"], 1))
    best = np.zeros(len(rows), dtype=np.int64)
    for batch in np.unique(batches):
        here = np.flatnonzero(batches == batch)
        best[here] = _argmin(wide(x[batch, places[here]]), wide(c[batch]))
    points = x[batches, places]
    exact = integral(points, c)

    def scores(ids: Ints) -> tuple[Floats, Floats]:
        return _scores(wide(points), wide(c[batches, ids]), exact)

    return {"ids": ExpectedArgmin(value=best, choices=problem.dims["K"], scores=scores)}


def _argmin(points: Floats, centroids: Floats) -> Ints:
    with np.errstate(invalid="ignore", over="ignore"):
        scores = np.square(centroids).sum(axis=1) - 2.0 * (points @ centroids.T)
    # NaN and +inf never win; a row of nothing else falls to index 0 as the contract says.
    best: Ints = np.where(np.isnan(scores), np.inf, scores).argmin(axis=1)
    return best


def _scores(points: Floats, chosen: Floats, exact: bool) -> tuple[Floats, Floats]:
    """The scores of one centroid per point, summed over the features, with their f32 bounds."""
    with np.errstate(invalid="ignore", over="ignore"):
        norms = np.square(chosen).sum(axis=1)
        value = norms - 2.0 * (points * chosen).sum(axis=1)
        magnitude = norms + 2.0 * np.abs(points * chosen).sum(axis=1)
    return value, sum_bound(value, magnitude, points.shape[1], exact)
