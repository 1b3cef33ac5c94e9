"""Seeded inputs of a problem."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from importlib import import_module
from types import ModuleType

import numpy as np

from cake.workloads.contract import Contract, ContractError, Shape
from cake.workloads.expected import Array
from cake.workloads.families import fill, standard_families
from cake.workloads.problem import Problem, problem

# A workload's own families: input name -> numbers, in float64 or integers, before the cast.
Generator = Callable[[Problem, np.random.Generator], Mapping[str, Array]]


def generate(
    contract: Contract, shape: Shape, dtype: str, family: str, seed: int
) -> dict[str, Array]:
    """The inputs of ``contract`` at ``shape`` and ``dtype``, by tensor name.

    Arrays are C-contiguous, in the tensors' dtypes (bf16 and fp8 as ml_dtypes), and depend on
    nothing but the arguments. Raises :class:`ContractError` for a family, shape or dtype that
    the contract does not have.
    """
    contract.family(family)
    instance = problem(contract, shape, dtype)
    # Families draw from streams of their own: equal seeds must not make families alike.
    rng = np.random.default_rng([seed, zlib.crc32(family.encode())])
    own = _own_families(contract.name)
    if family in own:
        numbers = dict(own[family](instance, rng))
    elif family in {f.name for f in standard_families(contract.dimensions)}:
        numbers = {spec.name: fill(instance, spec, family, rng) for spec in contract.inputs}
    else:
        raise ContractError(f"{contract.name}: nothing generates the declared family `{family}`")
    return {spec.name: _cast(instance, spec.name, numbers[spec.name]) for spec in contract.inputs}


def _own_families(name: str) -> Mapping[str, Generator]:
    module: ModuleType = import_module(f"cake.workloads.{name}.inputs")
    families: Mapping[str, Generator] = module.FAMILIES
    return families


def _cast(instance: Problem, tensor: str, numbers: Array) -> Array:
    with np.errstate(over="ignore"):
        array = np.ascontiguousarray(numbers.astype(instance.dtype_of(tensor)))
    if array.shape != instance.shape_of(tensor):
        raise ContractError(
            f"{instance.contract.name}: `{tensor}` was made with shape {array.shape}, "
            f"the problem has {instance.shape_of(tensor)}"
        )
    return array
