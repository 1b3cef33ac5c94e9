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
    batches, places = np.divmod(rows, max(problem.dims["Q"], 1))
    return neighbours(inputs["q"][batches, places], batches, inputs["x"], problem.dims["k"])


def neighbours(
    queries: Array, batches: Ints, x: Array, k: int, own: Ints | None = None
) -> Mapping[str, Expected]:
    """The ``k`` rows of ``x`` (B, M, D) nearest to each of ``queries`` (rows, D), which belong to
    ``batches``. ``own`` are rows that are no neighbours of their query, one each."""
    ids = np.zeros((len(queries), k), dtype=np.int64)
    value, low, high = (np.zeros((len(queries), k)) for _ in range(3))
    exact = integral(queries, x)
    for batch in np.unique(batches):
        here = np.flatnonzero(batches == batch)
        distances, bounds = _distances(wide(queries[here]), wide(x[batch]), exact)
        if own is not None:
            distances, bounds = (_without(array, own[here]) for array in (distances, bounds))
        # A stable sort keeps the lowest index in front among equals.
        order = np.argsort(distances, axis=1, kind="stable")[:, :k]
        value[here] = np.take_along_axis(distances, order, axis=1)
        low[here] = np.sort(distances - bounds, axis=1)[:, :k]
        high[here] = np.sort(distances + bounds, axis=1)[:, :k]
        ids[here] = order if own is None else order + (order >= own[here, None])

    def scores(chosen: Ints) -> tuple[Floats, Floats]:
        points, near = wide(queries)[:, None], wide(x[batches[:, None], chosen])
        with np.errstate(invalid="ignore", over="ignore"):
            products = points * near
            sums = products.sum(axis=2), np.abs(products).sum(axis=2)
        score, bound = _bounded(points, near, *sums, exact)
        # NaN is as wrong as a score can be.
        return score if own is None else np.where(chosen == own[:, None], np.nan, score), bound

    with np.errstate(invalid="ignore"):
        bound = np.maximum(high - value, value - low)
    bound = np.where(np.isfinite(value), bound, 0.0)
    return {
        "distances": ExpectedFloat(value=value, bound=bound, ascending=True),
        "ids": ExpectedRanked(value=ids, choices=x.shape[1], low=low, high=high, scores=scores),
    }


def _without(array: Floats, own: Ints) -> Floats:
    """``array`` without one column in each row."""
    kept = np.arange(array.shape[1]) != own[:, None]
    others: Floats = array[kept].reshape(len(array), array.shape[1] - 1)
    return others


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
