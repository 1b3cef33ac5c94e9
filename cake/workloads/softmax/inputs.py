"""Input families of the softmax."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import data

# Cosines of embeddings lie in [-1, 1]; contrastive models divide them by 0.05.
INVERSE_TEMPERATURE = 20.0


def _normal(problem: Problem, rng: np.random.Generator) -> Array:
    return rng.standard_normal(problem.shape_of("x"))


def _masked(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = _normal(problem, rng)
    keep = rng.integers(0, x.shape[1], (x.shape[0], 1))
    mask = rng.random(x.shape) < 0.5
    np.put_along_axis(mask, keep, False, axis=1)
    return {"x": np.where(mask, -np.inf, x)}


def _minus_infinity_rows(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = _normal(problem, rng)
    x[::3] = -np.inf
    return {"x": x}


def _edge_maximum(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = _normal(problem, rng)
    x[::2, 0] = 12
    x[1::2, -1] = 12
    return {"x": x}


def _offset(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    x = _normal(problem, rng)
    x[::2] += 100
    x[1::2] -= 100
    return {"x": x}


def _spoiled(problem: Problem, rng: np.random.Generator, value: float) -> Mapping[str, Array]:
    """Normal rows; every second one, from the first on, holds ``value`` once."""
    x = _normal(problem, rng)
    for row in range(0, x.shape[0], 2):
        x[row, rng.integers(x.shape[1])] = value
    return {"x": x}


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    """Similarities of sentences, as a contrastive loss feeds them to a softmax."""
    rows = data("embeddings").astype(np.float32)
    left = rows[rng.integers(0, len(rows), problem.dims["M"])]
    right = rows[rng.integers(0, len(rows), problem.dims["N"])]
    return {"x": INVERSE_TEMPERATURE * (left @ right.T)}


FAMILIES: Mapping[str, Generator] = {
    "masked": _masked,
    "minus_infinity_rows": _minus_infinity_rows,
    "edge_maximum": _edge_maximum,
    "offset": _offset,
    "nan": lambda problem, rng: _spoiled(problem, rng, np.nan),
    "infinite": lambda problem, rng: _spoiled(problem, rng, np.inf),
    "embeddings": _embeddings,
}
