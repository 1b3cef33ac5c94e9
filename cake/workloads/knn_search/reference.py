"""Float64 reference of the nearest-neighbour search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import (
    EXACT_LIMIT,
    F32_UNIT,
    Array,
    Expected,
    ExpectedFloat,
    ExpectedRanked,
    Floats,
    Ints,
    integral,
    sum_bound,
    wide,
)
from cake.workloads.problem import Problem


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``ids`` and ``distances`` at ``rows`` (flat over B and Q) by the order of the distances."""
    q, x, k = inputs["q"], inputs["x"], problem.dims["k"]
    batches, places = np.divmod(rows, max(problem.dims["Q"], 1))
    ids = np.zeros((len(rows), k), dtype=np.int64)
    value, low, high = (np.zeros((len(rows), k)) for _ in range(3))
    queries = q[batches, places]
    exact = integral(queries, x)
    for batch in np.unique(batches):
        here = np.flatnonzero(batches == batch)
        distances, bounds = _distances(wide(queries[here]), wide(x[batch]), exact)
        # A stable sort keeps the lowest index in front among equals.
        ids[here] = np.argsort(distances, axis=1, kind="stable")[:, :k]
        value[here] = np.take_along_axis(distances, ids[here], axis=1)
        low[here] = np.sort(distances - bounds, axis=1)[:, :k]
        high[here] = np.sort(distances + bounds, axis=1)[:, :k]

    def scores(chosen: Ints) -> tuple[Floats, Floats]:
        points, near = wide(queries)[:, None], wide(x[batches[:, None], chosen])
        with np.errstate(invalid="ignore", over="ignore"):
            products = points * near
            sums = products.sum(axis=2), np.abs(products).sum(axis=2)
        return _bounded(points, near, *sums, exact)

    with np.errstate(invalid="ignore"):
        bound = np.maximum(high - value, value - low)
    bound = np.where(np.isfinite(value), bound, 0.0)
    return {
        "distances": ExpectedFloat(value=value, bound=bound, ascending=True),
        "ids": ExpectedRanked(
            value=ids, choices=problem.dims["M"], low=low, high=high, scores=scores
        ),
    }


def _distances(queries: Floats, rows: Floats, exact: bool) -> tuple[Floats, Floats]:
    """Distances of all pairs, (queries, rows), and their bounds."""
    with np.errstate(invalid="ignore", over="ignore"):
        products, sizes = queries @ rows.T, np.abs(queries) @ np.abs(rows).T
    return _bounded(queries[:, None], rows[None], products, sizes, exact)


def _bounded(
    queries: Floats, rows: Floats, products: Floats, sizes: Floats, exact: bool
) -> tuple[Floats, Floats]:
    """Squared distances from the products and the sums of absolute products, with f32 bounds.

    The bounds are those of |q|^2 + |x|^2 - 2 q.x, whose terms may cancel; differences first is
    never worse.
    """
    features = rows.shape[-1]
    with np.errstate(invalid="ignore", over="ignore"):
        left, right = np.square(queries).sum(axis=-1), np.square(rows).sum(axis=-1)
        value = left + right - 2.0 * products
        magnitude = left + right + 2.0 * sizes
        bound = 2.0 * sum_bound(products, sizes, features, exact=False)
        for norm in (left, right):
            bound = bound + sum_bound(norm, norm, features, exact=False)
        bound = bound + 4 * F32_UNIT * magnitude
    if exact:
        bound = np.where(magnitude < EXACT_LIMIT, 0.0, bound)
    value = np.where(np.isnan(value), np.inf, np.maximum(value, 0.0))
    return value, np.where(np.isfinite(value), bound, 0.0)
