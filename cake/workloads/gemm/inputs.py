"""Input families of the matrix product."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import embeddings


def _normal(problem: Problem, rng: np.random.Generator) -> dict[str, Array]:
    return {name: rng.standard_normal(problem.shape_of(name)) for name in ("a", "b")}


def _cancellation(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _normal(problem, rng)
    half = problem.dims["K"] // 2
    a, b = arrays["a"], arrays["b"]
    a[..., half : 2 * half] = -a[..., :half]
    if problem.parameters["b_layout"] == "kn":
        b[..., half : 2 * half, :] = b[..., :half, :]
    else:
        b[..., half : 2 * half] = b[..., :half]
    a[..., :half] *= 1 + 2.0**-6
    return arrays


def _outliers(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _normal(problem, rng)
    if arrays["a"].size:
        columns = rng.integers(0, problem.dims["K"], arrays["a"].shape[:-1])
        np.put_along_axis(arrays["a"], columns[..., None], 1000.0, axis=-1)
    return arrays


def _spoiled(
    problem: Problem, rng: np.random.Generator, values: tuple[float, ...]
) -> dict[str, Array]:
    """Normal arrays with one of ``values`` in about every third row of a, never in all rows."""
    arrays = _normal(problem, rng)
    rows = arrays["a"].reshape(-1, problem.dims["K"]) if arrays["a"].size else np.empty((0, 1))
    for count, row in enumerate(range(1, len(rows), 3)):
        rows[row, rng.integers(rows.shape[1])] = values[count % len(values)]
    return arrays


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _spoiled(problem, rng, (np.nan,))
    if arrays["b"].size:
        arrays["b"].reshape(-1)[-1] = np.nan
    return arrays


def _infinite(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return _spoiled(problem, rng, (np.inf, -np.inf))


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return {name: embeddings(problem, name, "K", rng) for name in ("a", "b")}


FAMILIES: Mapping[str, Generator] = {
    "cancellation": _cancellation,
    "outliers": _outliers,
    "nan": _nan,
    "infinite": _infinite,
    "embeddings": _embeddings,
}
