"""Input families of the k-means update."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import digits, embeddings

Ids = Callable[[Problem, np.random.Generator], Array]


def _uniform(problem: Problem, rng: np.random.Generator) -> Array:
    return rng.integers(0, problem.dims["K"], problem.shape_of("ids"))


def _one_cluster(problem: Problem, rng: np.random.Generator) -> Array:
    return np.full(problem.shape_of("ids"), problem.dims["K"] - 1)


def _skewed(problem: Problem, rng: np.random.Generator) -> Array:
    return np.minimum(rng.zipf(1.5, problem.shape_of("ids")), problem.dims["K"]) - 1


def _empty_clusters(problem: Problem, rng: np.random.Generator) -> Array:
    odd = 2 * rng.integers(0, max(1, problem.dims["K"] // 2), problem.shape_of("ids")) + 1
    return np.minimum(odd, problem.dims["K"] - 1)


def _sorted_ids(problem: Problem, rng: np.random.Generator) -> Array:
    return np.sort(_uniform(problem, rng), axis=-1)


def _normal_points(ids: Ids) -> Generator:
    """The family with normal points and the given cluster numbers."""

    def family(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
        arrays = {
            name: rng.standard_normal(problem.shape_of(name), dtype=np.float32)
            for name in ("x", "c_old")
        }
        return {**arrays, "ids": ids(problem, rng)}

    return family


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _normal_points(_uniform)(problem, rng)
    points = arrays["x"].reshape(-1, problem.dims["D"])
    for row in range(0, len(points), max(1, len(points) // 3)):
        points[row, rng.integers(problem.dims["D"])] = np.nan
    return arrays


def _digits(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = {name: digits(problem, name, "D", rng) for name in ("x", "c_old")}
    return {**arrays, "ids": _uniform(problem, rng)}


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = {name: embeddings(problem, name, "D", rng) for name in ("x", "c_old")}
    return {**arrays, "ids": _uniform(problem, rng)}


FAMILIES: Mapping[str, Generator] = {
    "one_cluster": _normal_points(_one_cluster),
    "skewed": _normal_points(_skewed),
    "empty_clusters": _normal_points(_empty_clusters),
    "sorted_ids": _normal_points(_sorted_ids),
    "nan": _nan,
    "digits": _digits,
    "embeddings": _embeddings,
}
