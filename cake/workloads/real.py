"""Real data: scikit-learn's digits and sentence embeddings, shipped beside this file.

``data/README.md`` says where they come from and under which licence.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from math import prod

import numpy as np

from cake.workloads.contract import Family
from cake.workloads.expected import Array
from cake.workloads.problem import Problem

DIGITS = Family(
    name="digits",
    description="8x8 images of handwritten digits, integers from 0 to 16",
)
EMBEDDINGS = Family(
    name="embeddings", description="sentence embeddings of length 384, rows of norm 1"
)


@cache
def data(name: str) -> Array:
    """The rows of a data set: ``digits`` (1797 x 64, u8) or ``embeddings`` (512 x 384, f16)."""
    with as_file(files("cake.workloads").joinpath("data", f"{name}.npz")) as path:
        rows: Array = np.load(path, allow_pickle=False)["rows"]
    rows.setflags(write=False)
    return rows


def digits(problem: Problem, tensor: str, dim: str, rng: np.random.Generator) -> Array:
    """``tensor`` made of digits, their pixels along ``dim``; see :func:`_spread`."""
    return _spread(data("digits"), problem, tensor, dim, rng)


def embeddings(problem: Problem, tensor: str, dim: str, rng: np.random.Generator) -> Array:
    """``tensor`` made of embeddings, their features along ``dim``; see :func:`_spread`."""
    return _spread(data("embeddings"), problem, tensor, dim, rng)


def _spread(
    rows: Array, problem: Problem, tensor: str, dim: str, rng: np.random.Generator
) -> Array:
    """Rows drawn without replacement, again from all of them when they run out; features
    repeated or cut to the extent of ``dim``."""
    axes = problem.axes_of(tensor)
    extent = problem.dims[dim]
    others = [problem.dims[name] for name in axes if name != dim]
    count = prod(others)
    draws = [rng.permutation(len(rows)) for _ in range(-(-count // len(rows)))]
    chosen = np.concatenate([*draws, np.empty(0, dtype=np.int64)])[:count].astype(np.int64)
    features = np.arange(extent) % rows.shape[1]
    made = rows[chosen][:, features].reshape(*others, extent)
    return np.moveaxis(made, -1, axes.index(dim))
