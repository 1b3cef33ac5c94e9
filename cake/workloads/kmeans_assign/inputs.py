"""Input families of the k-means assignment."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array, spacing, wide
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import digits, embeddings


def _integer_ties(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    k = problem.dims["K"]
    distinct = max(1, min(k // 4, 7))
    batch, _, d = problem.shape_of("c")
    pool = rng.integers(-3, 4, (batch, distinct, d))
    # Index modulo the pool: copies of one centroid lie in every tile.
    return {"x": rng.integers(-3, 4, problem.shape_of("x")), "c": pool[:, np.arange(k) % distinct]}


def _near_ties(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    dtype = problem.dtype_of("c")
    c = wide(rng.standard_normal(problem.shape_of("c")).astype(dtype))
    batch, k, d = c.shape
    pairs = k // 2
    twins = c[:, :pairs].copy()
    feature = rng.integers(0, d, (batch, pairs, 1))
    near = np.take_along_axis(twins, feature, axis=2)
    np.put_along_axis(twins, feature, near + spacing(near, dtype), axis=2)
    c[:, k - pairs :] = twins
    home = rng.integers(0, k, problem.shape_of("ids"))
    x = np.take_along_axis(c, home[..., None], axis=1)
    return {"x": x + 0.05 * rng.standard_normal(x.shape), "c": c}


def _descending(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = np.zeros(problem.shape_of("x"))
    x[..., 0] = 1
    c = np.zeros(problem.shape_of("c"))
    c[..., 0] = _steps_towards_one(problem)
    return {"x": x, "c": c}


def _steps_towards_one(problem: Problem) -> Array:
    """K integers from -127 to 1, sorted; the score t^2 - 2 t falls strictly from step to step.

    Beyond 129 centroids the first ones share the value -127, the last 128 still descend.
    """
    return np.maximum(np.arange(problem.dims["K"]) - problem.dims["K"] + 2, -127)


def _feature_precision(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    c = np.zeros(problem.shape_of("c"))
    centroid = np.arange(problem.dims["K"])
    c[:, centroid, centroid % problem.dims["D"]] = 1
    return {"x": 4096 + rng.integers(0, 16, problem.shape_of("x")), "c": c}


def _far_from_origin(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    centre = 16 * np.sign(rng.standard_normal((problem.dims["B"], 1, problem.dims["D"])))
    return {name: centre + rng.standard_normal(problem.shape_of(name)) for name in ("x", "c")}


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = {name: rng.standard_normal(problem.shape_of(name)) for name in ("x", "c")}
    points = arrays["x"].reshape(-1, problem.dims["D"])
    for row in range(0, len(points), 5):
        points[row, rng.integers(problem.dims["D"])] = np.nan
    return arrays


def _digits(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return {name: digits(problem, name, "D", rng) for name in ("x", "c")}


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return {name: embeddings(problem, name, "D", rng) for name in ("x", "c")}


FAMILIES: Mapping[str, Generator] = {
    "integer_ties": _integer_ties,
    "near_ties": _near_ties,
    "descending": _descending,
    "feature_precision": _feature_precision,
    "far_from_origin": _far_from_origin,
    "nan": _nan,
    "digits": _digits,
    "embeddings": _embeddings,
}
