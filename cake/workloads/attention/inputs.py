"""Input families of attention."""

from __future__ import annotations

from collections.abc import Mapping
from math import sqrt

import numpy as np

from cake.workloads.expected import Array
from cake.workloads.inputs import Generator
from cake.workloads.problem import Problem
from cake.workloads.real import embeddings

STEP = 4.0
"""Difference of neighbouring scores: e^-4 is far above the rounding of a sum."""
OFFSET = 300.0
"""Beyond the powers that f32 holds (e^88)."""
DIGIT = 128
"""Numbers of keys are written to this base, so that every element type holds them exactly."""


def _normal(problem: Problem, rng: np.random.Generator) -> dict[str, Array]:
    return {name: rng.standard_normal(problem.shape_of(name)) for name in ("q", "k", "v")}


def _staircase(problem: Problem, rng: np.random.Generator, sign: int) -> Mapping[str, Array]:
    """The score of key j is ``sign * STEP * j``: high digit of j in the first feature, low digit in
    the last (alone where they are one)."""
    made = _normal(problem, rng)
    high, low = np.divmod(np.arange(problem.dims["Lk"]), DIGIT)
    unit = STEP * sqrt(problem.dims["D"])
    for name in ("q", "k"):
        made[name] = np.zeros(problem.shape_of(name))
    for feature, digit, weight in ((0, high, DIGIT), (-1, low, 1)):
        made["q"][..., feature] = unit * weight
        made["k"][..., feature] = sign * digit
    return made


def _offset(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _normal(problem, rng)
    signs = np.where(np.arange(problem.dims["Lq"]) % 2 == 0, 1.0, -1.0)
    size = sqrt(OFFSET * sqrt(problem.dims["D"]))
    made["q"][..., 0] = size * signs
    made["k"][..., 0] = size
    return made


def _equal_scores(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    return {**_normal(problem, rng), "q": np.zeros(problem.shape_of("q"))}


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _normal(problem, rng)
    rows = made["q"].reshape(-1, problem.dims["D"])
    for row in range(0, len(rows), 5):
        rows[row, rng.integers(problem.dims["D"])] = np.nan
    return made


def _embeddings(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    """Similarities of sentences, at the temperature of a contrastive loss."""
    made = {name: embeddings(problem, name, "D", rng).astype(np.float64) for name in "qkv"}
    return {**made, "q": 20 * sqrt(problem.dims["D"]) * made["q"]}


FAMILIES: Mapping[str, Generator] = {
    "rising": lambda problem, rng: _staircase(problem, rng, 1),
    "falling": lambda problem, rng: _staircase(problem, rng, -1),
    "offset": _offset,
    "equal_scores": _equal_scores,
    "nan": _nan,
    "embeddings": _embeddings,
}
