"""The input families that every workload has, and how tensors are filled with them.

A fill takes the problem, the tensor and a generator and returns float64 numbers (or integers);
the caller casts them to the tensor's dtype. Workload-specific families live in the workload's
``inputs.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from math import prod
from types import MappingProxyType

import numpy as np

from cake.codegen.hostexpr import HostExpr
from cake.workloads.contract import Dimension, Family, TensorSpec
from cake.workloads.expected import Array
from cake.workloads.problem import Problem

Fill = Callable[[Problem, TensorSpec, np.random.Generator], Array]

# Heavy tails stay below this, so that sums of a few thousand products remain finite in f16.
TAIL_LIMIT = 64.0
EXACT_RANGE = 8  # |integers|: sums of 2^18 products are still exact in f32.
CHUNK = 1 << 22  # elements that one stream fills: large tensors are drawn by all cores at once


def standard_families(dimensions: tuple[Dimension, ...]) -> tuple[Family, ...]:
    """The families of every workload: the general ones, and one per dimension."""
    axes = (
        Family(
            name=f"iota_{d.name}",
            description=f"values depend only on the index along {d.name}; tensors without it "
            "are normal",
        )
        for d in dimensions
    )
    return (*_GENERAL, *axes)


_GENERAL = (
    Family(name="normal", description="standard normal"),
    Family(name="small", description="standard normal times 0.01"),
    Family(name="large", description="standard normal times 30"),
    Family(name="negated", description="minus the absolute value of a standard normal"),
    Family(
        name="heavy_tails",
        description=f"Student's t, two degrees of freedom, clipped to {TAIL_LIMIT:g}",
    ),
    Family(name="duplicated_rows", description="few distinct rows, each many times"),
    Family(name="constant", description="one number per tensor, no power of two"),
    Family(name="zero", description="zeros"),
    Family(name="identity", description="ones on the diagonal of the last two axes"),
    Family(
        name="exact_integers",
        description=f"integers from -{EXACT_RANGE} to {EXACT_RANGE}",
    ),
)


def _normal(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    numbers: Array = np.empty(problem.shape_of(spec.name), np.float32)
    flat = numbers.reshape(-1)
    parts = [flat[at : at + CHUNK] for at in range(0, flat.size, CHUNK)]
    # A stream for each part, not for each thread: the numbers do not depend on the machine.
    streams = [rng] if len(parts) == 1 else rng.spawn(len(parts))
    with ThreadPoolExecutor() as threads:
        fills = [
            threads.submit(r.standard_normal, None, np.float32, p)
            for r, p in zip(streams, parts, strict=True)
        ]
    for done in fills:
        done.result()
    return numbers


def _heavy_tails(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    # With two degrees of freedom the inverse distribution function has a closed form.
    u = rng.random(problem.shape_of(spec.name), dtype=np.float32)
    u = np.clip(u, 1e-6, 1 - 1e-6)
    tails: Array = np.clip((2 * u - 1) / np.sqrt(2 * u * (1 - u)), -TAIL_LIMIT, TAIL_LIMIT)
    return tails


def _duplicated_rows(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    shape = problem.shape_of(spec.name)
    if len(shape) < 2:
        return rng.standard_normal(shape)
    rows = prod(shape[:-1])
    distinct = max(1, rows // 5)
    pool = rng.standard_normal((distinct, shape[-1]), dtype=np.float32)
    return pool[rng.integers(0, distinct, rows)].reshape(shape)


def _constant(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    return np.full(problem.shape_of(spec.name), rng.uniform(0.3, 0.45))


def _zero(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    return np.zeros(problem.shape_of(spec.name))


def _identity(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    shape = problem.shape_of(spec.name)
    if len(shape) < 2:
        return np.ones(shape)
    return np.broadcast_to(np.eye(shape[-2], shape[-1]), shape)


def _exact_integers(problem: Problem, spec: TensorSpec, rng: np.random.Generator) -> Array:
    return rng.integers(-EXACT_RANGE, EXACT_RANGE + 1, problem.shape_of(spec.name))


def _scaled(factor: float) -> Fill:
    return lambda problem, spec, rng: factor * _normal(problem, spec, rng)


_FILLS: Mapping[str, Fill] = MappingProxyType(
    {
        "normal": _normal,
        "small": _scaled(0.01),
        "large": _scaled(30.0),
        "negated": lambda problem, spec, rng: -np.abs(_normal(problem, spec, rng)),
        "heavy_tails": _heavy_tails,
        "duplicated_rows": _duplicated_rows,
        "constant": _constant,
        "zero": _zero,
        "identity": _identity,
        "exact_integers": _exact_integers,
    }
)


def iota(problem: Problem, spec: TensorSpec, dim: str, rng: np.random.Generator) -> Array:
    """Numbers that depend on the index along ``dim`` only; normal where ``spec`` lacks it.

    The 61 steps are prime to every tile size, so that no two tiles hold the same values, and
    multiples of 1/8, so that every dtype down to bf16 holds them exactly.
    """
    axes = problem.axes_of(spec.name)
    if dim not in axes:
        return _normal(problem, spec, rng)
    steps = (np.arange(problem.dims[dim]) % 61 - 30) / 8
    shape = [problem.dims[dim] if name == dim else 1 for name in axes]
    return np.broadcast_to(steps.reshape(shape), problem.shape_of(spec.name))


def integers(problem: Problem, spec: TensorSpec, family: str, rng: np.random.Generator) -> Array:
    """An integer input within its range: constant for the families ``zero`` and ``constant``,
    counting for ``iota_*``, uniform otherwise."""
    assert spec.values is not None
    low, high = (HostExpr(text).evaluate(problem.env()) for text in spec.values)
    shape = problem.shape_of(spec.name)
    if family in ("zero", "constant"):
        return np.full(shape, low)
    dim = family.removeprefix("iota_")
    axes = problem.axes_of(spec.name)
    if dim in axes:
        steps = low + np.arange(problem.dims[dim]) % (high - low)
        view = [problem.dims[dim] if name == dim else 1 for name in axes]
        return np.broadcast_to(steps.reshape(view), shape)
    return rng.integers(low, high, shape)


def fill(problem: Problem, spec: TensorSpec, family: str, rng: np.random.Generator) -> Array:
    """The numbers of ``spec`` under a standard family, before the cast to its dtype."""
    if spec.values is not None:
        return integers(problem, spec, family, rng)
    if family in _FILLS:
        return _FILLS[family](problem, spec, rng)
    return iota(problem, spec, family.removeprefix("iota_"), rng)
