"""Input families of RMSNorm."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import embeddings


def _normal(problem: Problem, rng: np.random.Generator) -> dict[str, Array]:
    return {name: rng.standard_normal(problem.shape_of(name)) for name in ("x", "w")}


def _tiny(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _normal(problem, rng)
    arrays["x"] *= np.sqrt(problem.number("eps"))
    arrays["x"][::4] = 0
    return arrays


def _spoiled(problem: Problem, rng: np.random.Generator, *values: float) -> dict[str, Array]:
    """Normal arrays with one of ``values`` in every second row, from the first row on."""
    arrays = _normal(problem, rng)
    for count, row in enumerate(range(0, problem.dims["M"], 2)):
        arrays["x"][row, rng.integers(problem.dims["D"])] = values[count % len(values)]
    return arrays


def _outliers(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    arrays = _normal(problem, rng)
    columns = rng.integers(0, problem.dims["D"], (problem.dims["M"], 1))
    np.put_along_axis(arrays["x"], columns, 1000.0, axis=1)
    return arrays


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    weight = 1 + 0.1 * rng.standard_normal(problem.shape_of("w"))
    return {"x": embeddings(problem, "x", "D", rng), "w": weight}


FAMILIES: Mapping[str, Generator] = {
    "tiny": _tiny,
    "outliers": _outliers,
    "nan": lambda problem, rng: _spoiled(problem, rng, np.nan),
    "infinite": lambda problem, rng: _spoiled(problem, rng, np.inf, -np.inf),
    "embeddings": _embeddings,
}
