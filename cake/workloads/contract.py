"""What a workload demands of a kernel, as data.

A contract fixes the mathematics, the tensors, the input families, the tolerances, the shapes and
the timing scope before any search starts; nothing that a candidate says changes it. The pieces
here are frozen records. ``reference.py`` and ``inputs.py`` in the workload's folder hold the
only code that a contract needs.

Formulas (constraints, bytes, flops, value ranges) are texts in the grammar of
:mod:`cake.codegen.hostexpr`: parsed, never executed.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal

from cake.codegen.hostexpr import HostExpr
from cake.ir.dtypes import DTYPES

Scalar = int | float | str
Shape = Mapping[str, Scalar]
Role = Literal["input", "output", "inout", "workspace"]
SHAPE_SETS = ("tune", "audit", "headline", "small", "edge")


class ContractError(ValueError):
    """A contract that contradicts itself, or a request that its contract does not admit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dimension:
    """A symbolic extent. One that is ``optional`` may be left out of a shape and is then 1 in
    formulas and absent from every tensor."""

    name: str
    description: str
    minimum: int = 0
    optional: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """A scalar of the problem that is no extent: an epsilon, a layout. Empty ``choices`` admit any
    value of the default's type."""

    name: str
    description: str
    default: Scalar
    choices: tuple[Scalar, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Tolerance:
    """How an output is compared with the reference.

    ``exact``: equal bit for bit. ``argmin``: the index of the least score; another index is right
    only where the gap between both scores does not exceed their f32 rounding. ``ranked``: the
    indices of the least scores in order, by the same rule at every rank. ``float``: every
    element within ``output_ulps`` spacings of the output's dtype, plus the reference's bound on
    the f32 arithmetic before that last rounding; and the relative L2 error within
    ``rel_l2_ulps`` machine epsilons of the output's dtype, plus the same bound's L2 share.
    An element whose bound is zero has to be the correctly rounded result itself. ``rel_l2`` is a
    stated limit of the relative L2 error in place of the model's, for chains of products whose
    operands are rounded on the way.
    """

    kind: Literal["exact", "argmin", "ranked", "float"]
    output_ulps: float = 0.5
    rel_l2_ulps: float = 0.5
    rel_l2: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorSpec:
    """One tensor argument, contiguous and row-major in ``dims``.

    ``dims`` are dimension names. ``dtype`` is an element type, or a type variable that the
    contract's ``dtypes`` bind. ``layouts`` give other orders of the dimensions, keyed by the value
    of the contract's parameter ``layout_parameter``. ``values`` is the half-open range of an
    integer input. Only outputs carry a ``tolerance``.
    """

    name: str
    role: Role
    dims: tuple[str, ...]
    dtype: str
    description: str
    tolerance: Tolerance | None = None
    values: tuple[str, str] | None = None
    layout_parameter: str | None = None
    layouts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def is_input(self) -> bool:
        return self.role in ("input", "inout")

    @property
    def is_output(self) -> bool:
        return self.role in ("output", "inout")


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """A named distribution of inputs."""

    name: str
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One launch of the timed scope: ``prepare`` steps fill workspaces, ``main`` does the work."""

    name: str
    description: str
    produces: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One row of a shape set: extents (and parameters, where they differ from the default)."""

    shape: Shape
    dtype: str

    def label(self) -> str:
        """A short name, such as ``M128 N256 K64 bf16``."""
        return " ".join([*(f"{name}{value}" for name, value in self.shape.items()), self.dtype])


@dataclass(frozen=True, slots=True, kw_only=True)
class Contract:
    """A workload. ``row_dims`` are dimensions that all outputs share, wherever they stand in them:
    their product counts the rows by which large problems are checked. ``dtypes`` bind type
    variables, by the name that shapes use. ``bytes_moved`` is a formula over the tensors' sizes in
    bytes, ``flops`` one over the extents; together they give the physics floor of a shape.
    """

    name: str
    title: str
    mathematics: str
    dimensions: tuple[Dimension, ...]
    tensors: tuple[TensorSpec, ...]
    dtypes: Mapping[str, Mapping[str, str]]
    families: tuple[Family, ...]
    shapes: Mapping[str, tuple[Case, ...]]
    row_dims: tuple[str, ...]
    row_elements: str
    determinism: Literal["bitwise", "any-order"]
    determinism_note: str
    baselines: tuple[str, ...]
    steps: tuple[Step, ...]
    timing_scope: str
    bytes_moved: str
    flops: str
    parameters: tuple[Parameter, ...] = ()
    constraints: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_contract(self)

    def tensor(self, name: str) -> TensorSpec:
        """The tensor called ``name``. Raises :class:`ContractError` if there is none."""
        for spec in self.tensors:
            if spec.name == name:
                return spec
        known = ", ".join(spec.name for spec in self.tensors)
        raise ContractError(f"{self.name}: no tensor `{name}`; it has {known}")

    def family(self, name: str) -> Family:
        """The family called ``name``. Raises :class:`ContractError` if there is none."""
        for family in self.families:
            if family.name == name:
                return family
        known = ", ".join(family.name for family in self.families)
        raise ContractError(f"{self.name}: no input family `{name}`; it has {known}")

    @property
    def inputs(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for spec in self.tensors if spec.is_input)

    @property
    def outputs(self) -> tuple[TensorSpec, ...]:
        return tuple(spec for spec in self.tensors if spec.is_output)


def load_shapes(package: str) -> Mapping[str, tuple[Case, ...]]:
    """The shape sets in ``shapes.json`` of a workload's package.

    Each row is an object of extents and parameters with one more key, ``dtype``.
    """
    raw: dict[str, list[dict[str, Any]]] = json.loads(
        files(package).joinpath("shapes.json").read_text(encoding="utf-8")
    )
    sets = {}
    for name, rows in raw.items():
        cases = []
        for row in rows:
            shape = {key: value for key, value in row.items() if key != "dtype"}
            cases.append(Case(shape=MappingProxyType(shape), dtype=row["dtype"]))
        sets[name] = tuple(cases)
    return MappingProxyType(sets)


def _check_contract(contract: Contract) -> None:
    """Every name that a contract mentions is one that it declares."""
    where = f"contract `{contract.name}`"
    dims = {dimension.name for dimension in contract.dimensions}
    numbers = {p.name for p in contract.parameters if isinstance(p.default, int)}
    tensors = [spec.name for spec in contract.tensors]
    names = [*dims, *(p.name for p in contract.parameters), *tensors]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise ContractError(f"{where}: declared twice: {', '.join(twice)}")
    for spec in contract.tensors:
        _check_tensor(contract, spec, dims)
    formulas = [*contract.constraints, contract.flops, contract.row_elements]
    for text in formulas:
        _check_names(where, text, dims | numbers)
    _check_names(where, contract.bytes_moved, set(tensors))
    for dim in contract.row_dims:
        for spec in contract.outputs:
            if dim not in spec.dims:
                raise ContractError(f"{where}: output `{spec.name}` lacks the row dimension {dim}")
    if missing := [name for name in SHAPE_SETS if not contract.shapes.get(name)]:
        raise ContractError(f"{where}: shapes.json has no rows for {', '.join(missing)}")


def _check_tensor(contract: Contract, spec: TensorSpec, dims: set[str]) -> None:
    where = f"contract `{contract.name}`, tensor `{spec.name}`"
    for order in (spec.dims, *spec.layouts.values()):
        if unknown := [dim for dim in order if dim not in dims]:
            raise ContractError(f"{where}: undeclared dimension {', '.join(unknown)}")
        if sorted(order) != sorted(spec.dims):
            raise ContractError(f"{where}: layout {order} is no permutation of {spec.dims}")
    if (spec.tolerance is None) == spec.is_output:
        raise ContractError(f"{where}: outputs, and only they, need a tolerance")
    for text in spec.values or ():
        _check_names(where, text, dims)
    for name, binding in contract.dtypes.items():
        if binding.get(spec.dtype, spec.dtype) not in DTYPES:
            raise ContractError(f"{where}: dtype `{name}` does not bind `{spec.dtype}` to a type")


def _check_names(where: str, text: str, known: set[str]) -> None:
    if unknown := sorted(HostExpr(text).names - known):
        raise ContractError(f"{where}: `{text}` uses the undeclared name {', '.join(unknown)}")
