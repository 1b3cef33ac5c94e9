"""Input families of the nearest-neighbour search."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array, spacing, wide
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import digits, embeddings


def _normal(problem: Problem, rng: np.random.Generator) -> dict[str, Array]:
    return {name: rng.standard_normal(problem.shape_of(name)) for name in ("q", "x")}


def _integer_ties(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    batch, rows, d = problem.shape_of("x")
    distinct = max(1, min(rows // 4, 7))
    pool = rng.integers(-3, 4, (batch, distinct, d))
    # Index modulo the pool: copies of one row lie in every tile.
    x = pool[:, np.arange(rows) % distinct]
    return {"q": rng.integers(-3, 4, problem.shape_of("q")), "x": x}


def _near_ties(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    dtype = problem.dtype_of("x")
    x = wide(rng.standard_normal(problem.shape_of("x")).astype(dtype))
    batch, rows, d = x.shape
    pairs = rows // 2
    twins = x[:, :pairs].copy()
    feature = rng.integers(0, d, (batch, pairs, 1))
    near = np.take_along_axis(twins, feature, axis=2)
    np.put_along_axis(twins, feature, near + spacing(near, dtype), axis=2)
    x[:, rows - pairs :] = twins
    q = _rows(x, problem, rng)
    return {"q": q + 0.05 * rng.standard_normal(q.shape), "x": x}


def _rows(x: Array, problem: Problem, rng: np.random.Generator) -> Array:
    """A database row for every query."""
    home = rng.integers(0, x.shape[1], (*problem.shape_of("q")[:2], 1))
    return np.take_along_axis(x, home, axis=1)


def _approaching(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    """Integers along the first feature: distances fall strictly over the last 128 rows."""
    made = {name: np.zeros(problem.shape_of(name)) for name in ("q", "x")}
    rows = problem.dims["M"]
    made["q"][..., 0] = 1
    made["x"][..., 0] = np.maximum(np.arange(rows) - rows + 2, -127)
    return made


def _one_place(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    """A run of rows from anywhere, none at a tile's start by rule, near all queries."""
    made = _normal(problem, rng)
    rows = problem.dims["M"]
    length = min(2 * problem.dims["k"], rows)
    first = rng.integers(0, rows - length + 1)
    made["x"] += 8
    made["x"][:, first : first + length] -= 8
    made["q"] *= 0.1
    return made


def _far_from_origin(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    centre = 16 * np.sign(rng.standard_normal((problem.dims["B"], 1, problem.dims["D"])))
    return {name: centre + array for name, array in _normal(problem, rng).items()}


def _self(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = rng.standard_normal(problem.shape_of("x"))
    return {"q": _rows(x, problem, rng), "x": x}


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _normal(problem, rng)
    for name, step in (("q", 5), ("x", 7)):
        rows = made[name].reshape(-1, problem.dims["D"])
        for row in range(0, len(rows), step):
            rows[row, rng.integers(problem.dims["D"])] = np.nan
    return made


FAMILIES: Mapping[str, Generator] = {
    "integer_ties": _integer_ties,
    "near_ties": _near_ties,
    "approaching": _approaching,
    "one_place": _one_place,
    "far_from_origin": _far_from_origin,
    "self": _self,
    "nan": _nan,
    "digits": lambda problem, rng: {n: digits(problem, n, "D", rng) for n in ("q", "x")},
    "embeddings": lambda problem, rng: {n: embeddings(problem, n, "D", rng) for n in ("q", "x")},
}
