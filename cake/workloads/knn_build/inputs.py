"""Input families of the neighbour graph."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array, spacing, wide
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import digits, embeddings


def _normal(problem: Problem, rng: np.random.Generator) -> Array:
    return rng.standard_normal(problem.shape_of("x"))


def _integer_ties(problem: Problem, rng: np.random.Generator) -> Array:
    batch, rows, d = problem.shape_of("x")
    distinct = max(1, min(rows // 4, 7))
    pool = rng.integers(-3, 4, (batch, distinct, d))
    # Index modulo the pool: copies of one row lie in every tile.
    return pool[:, np.arange(rows) % distinct]


def _twins(problem: Problem, rng: np.random.Generator) -> Array:
    dtype = problem.dtype_of("x")
    x = wide(_normal(problem, rng).astype(dtype))
    batch, rows, d = x.shape
    pairs = rows // 2
    twins = x[:, :pairs].copy()
    feature = rng.integers(0, d, (batch, pairs, 1))
    near = np.take_along_axis(twins, feature, axis=2)
    np.put_along_axis(twins, feature, near + spacing(near, dtype), axis=2)
    x[:, rows - pairs :] = twins
    return x


def _strided(problem: Problem, rng: np.random.Generator) -> Array:
    """Clusters far apart; their members follow each other at a stride of as many rows as there are
    clusters, so that near rows lie in different tiles."""
    batch, rows, d = problem.shape_of("x")
    clusters = max(1, rows // (2 * problem.dims["k"]))
    centres = 8 * rng.standard_normal((batch, clusters, d))
    return centres[:, np.arange(rows) % clusters] + 0.5 * _normal(problem, rng)


def _far_from_origin(problem: Problem, rng: np.random.Generator) -> Array:
    centre = 16 * np.sign(rng.standard_normal((problem.dims["B"], 1, problem.dims["D"])))
    return centre + _normal(problem, rng)


def _nan(problem: Problem, rng: np.random.Generator) -> Array:
    x = _normal(problem, rng)
    rows = x.reshape(-1, problem.dims["D"])
    for row in range(0, len(rows), 7):
        rows[row, rng.integers(problem.dims["D"])] = np.nan
    return x


FAMILIES: Mapping[str, Generator] = {
    "integer_ties": lambda problem, rng: {"x": _integer_ties(problem, rng)},
    "twins": lambda problem, rng: {"x": _twins(problem, rng)},
    "strided": lambda problem, rng: {"x": _strided(problem, rng)},
    "far_from_origin": lambda problem, rng: {"x": _far_from_origin(problem, rng)},
    "nan": lambda problem, rng: {"x": _nan(problem, rng)},
    "digits": lambda problem, rng: {"x": digits(problem, "x", "D", rng)},
    "embeddings": lambda problem, rng: {"x": embeddings(problem, "x", "D", rng)},
}
