"""A contract at one shape and dtype, validated: concrete extents, types and costs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from cake.codegen.hostexpr import HostExpr
from cake.ir.dtypes import DTYPES, numpy_dtype
from cake.workloads.contract import Contract, ContractError, Parameter, Scalar, Shape


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One instance of a workload; make it with :func:`problem`.

    ``dims`` holds the extents that the shape gives; ``parameters`` every parameter of the
    contract.
    """

    contract: Contract
    dims: Mapping[str, int]
    dtype: str
    parameters: Mapping[str, Scalar]

    def env(self) -> dict[str, int]:
        """Extents and integer parameters for formulas; an omitted extent counts as 1."""
        env = {d.name: self.dims.get(d.name, 1) for d in self.contract.dimensions}
        env.update({k: v for k, v in self.parameters.items() if isinstance(v, int)})
        return env

    def axes_of(self, tensor: str) -> tuple[str, ...]:
        """The dimension names of ``tensor`` in memory order, omitted ones dropped."""
        spec = self.contract.tensor(tensor)
        order = spec.dims
        if spec.layout_parameter is not None:
            order = spec.layouts[str(self.parameters[spec.layout_parameter])]
        return tuple(name for name in order if name in self.dims)

    def shape_of(self, tensor: str) -> tuple[int, ...]:
        """The extents of ``tensor``."""
        return tuple(self.dims[name] for name in self.axes_of(tensor))

    def dtype_of(self, tensor: str) -> np.dtype[np.generic]:
        """The numpy (or ml_dtypes) element type of ``tensor``."""
        symbol = self.contract.tensor(tensor).dtype
        name = self.contract.dtypes[self.dtype].get(symbol, symbol)
        dtype: np.dtype[np.generic] = numpy_dtype(DTYPES[name])
        return dtype

    def bytes_of(self, tensor: str) -> int:
        """The size of ``tensor`` in bytes."""
        return prod(self.shape_of(tensor)) * self.dtype_of(tensor).itemsize

    def number(self, parameter: str) -> float:
        """The value of a numeric parameter."""
        return float(self.parameters[parameter])

    @property
    def rows(self) -> int:
        """How many rows every output has (the product of the contract's ``row_dims``)."""
        return prod(self.dims.get(name, 1) for name in self.contract.row_dims)

    @property
    def flops(self) -> int:
        """Operations that the mathematics needs (a multiply and an add count as two)."""
        return HostExpr(self.contract.flops).evaluate(self.env())

    @property
    def bytes_moved(self) -> int:
        """Least traffic with device memory, in bytes: each needed tensor once."""
        sizes = {spec.name: self.bytes_of(spec.name) for spec in self.contract.tensors}
        return HostExpr(self.contract.bytes_moved).evaluate(sizes)


def problem(contract: Contract, shape: Shape, dtype: str) -> Problem:
    """``contract`` at ``shape`` and ``dtype``.

    ``shape`` maps dimension names to extents; it may also set parameters. Raises
    :class:`ContractError` that names the offending entry and what is admitted.
    """
    if dtype not in contract.dtypes:
        admitted = ", ".join(contract.dtypes)
        raise ContractError(f"{contract.name}: dtype `{dtype}` is not one of {admitted}")
    known = {d.name for d in contract.dimensions} | {p.name for p in contract.parameters}
    if unknown := sorted(set(shape) - known):
        raise ContractError(
            f"{contract.name}: unknown entry {', '.join(unknown)} in the shape; "
            f"it takes {', '.join(sorted(known))}"
        )
    made = Problem(
        contract=contract,
        dims=_extents(contract, shape),
        dtype=dtype,
        parameters={p.name: _parameter(contract, p, shape) for p in contract.parameters},
    )
    for text in contract.constraints:
        if not HostExpr(text).evaluate(made.env()):
            raise ContractError(f"{contract.name}: {dict(made.dims)} violates `{text}`")
    return made


def _extents(contract: Contract, shape: Shape) -> dict[str, int]:
    extents = {}
    for dimension in contract.dimensions:
        value = shape.get(dimension.name)
        if value is None:
            if dimension.optional:
                continue
            raise ContractError(
                f"{contract.name}: the shape lacks {dimension.name} ({dimension.description})"
            )
        if type(value) is not int or value < dimension.minimum:
            raise ContractError(
                f"{contract.name}: {dimension.name} = {value!r}; "
                f"it has to be an integer of at least {dimension.minimum}"
            )
        extents[dimension.name] = value
    return extents


def _parameter(contract: Contract, parameter: Parameter, shape: Shape) -> Scalar:
    value = shape.get(parameter.name, parameter.default)
    if parameter.choices and value not in parameter.choices:
        admitted = ", ".join(map(str, parameter.choices))
        raise ContractError(
            f"{contract.name}: {parameter.name} = {value!r} is not one of {admitted}"
        )
    if isinstance(value, str) != isinstance(parameter.default, str):
        kind = type(parameter.default).__name__
        raise ContractError(f"{contract.name}: {parameter.name} = {value!r} has to be a {kind}")
    return value
