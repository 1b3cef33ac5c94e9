"""From the arguments of a call to the figures of a launch, without a driver.

:class:`Binder` knows one kernel's interface. :meth:`Binder.bind` checks arguments and computes the
grid, the parameters that depend on shapes only, the geometry of tensor maps and the sizes of
workspaces. All errors are collected before one exception is raised.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from cake.codegen.abi import (
    INTEGER_SCALARS,
    DimArg,
    KernelAbi,
    ScalarSpec,
    StrideArg,
    TensorMapArg,
    TensorSpec,
)
from cake.codegen.hostexpr import HostExpr, HostExprError
from cake.diag import CakeError, Diagnostic, Diagnostics
from cake.runtime.array_checks import array_findings
from cake.runtime.arrays import ArrayError, ArrayView, adapter_of
from cake.runtime.driver import Device
from cake.runtime.findings import (
    ARGUMENT_SET,
    GRID_LIMIT,
    GUARD_FAILED,
    NOT_AN_ARRAY,
    TENSOR_MAP,
    WRONG_SCALAR,
    WRONG_SHAPE,
)
from cake.runtime.tensormap import MapError, MapSpec, map_problems, map_spec

_GRID_LIMITS = (2**31 - 1, 65535, 65535)
_INTEGER_BITS = {"i32": 32, "i64": 64}
_F32_MAX = 3.4028234663852886e38

Scalar = int | float


class LaunchError(CakeError):
    """The arguments do not fit the kernel; nothing was launched."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Binding:
    """What follows from the shapes of the arguments.

    ``grid`` counts blocks; ``empty`` says that it has a zero, so that nothing is launched.
    ``numbers`` holds dimensions and strides, ``maps`` the geometry of tensor maps, both by
    position in the interface's ``args``; ``workspaces`` holds sizes in bytes by name.
    """

    env: Mapping[str, int]
    grid: tuple[int, int, int]
    empty: bool
    numbers: Mapping[int, int]
    maps: Mapping[int, MapSpec]
    workspaces: Mapping[str, int]


class Binder:
    """The compiled form of one kernel's interface."""

    def __init__(self, abi: KernelAbi) -> None:
        self.abi = abi
        self._guards = [(HostExpr(guard.text), guard) for guard in abi.guards]
        self._grid = [HostExpr(text) for text in abi.grid]
        self._workspaces = {w.name: HostExpr(w.bytes) for w in abi.workspaces}
        self._dims = {
            index: [HostExpr(text) for text in arg.dims]
            for index, arg in enumerate(abi.args)
            if isinstance(arg, TensorMapArg) and arg.dims is not None
        }

    def views(self, args: Mapping[str, Any]) -> tuple[dict[str, ArrayView], dict[str, Scalar]]:
        """The arrays and scalars of a call by name; raises :class:`LaunchError`."""
        found = Diagnostics(_set_findings(self.abi, args))
        arrays: dict[str, ArrayView] = {}
        scalars: dict[str, Scalar] = {}
        for spec in self.abi.tensors:
            if spec.name in args:
                try:
                    arrays[spec.name] = adapter_of(args[spec.name]).view(args[spec.name])
                except ArrayError as error:
                    found.add(_not_an_array(spec, args[spec.name], error))
        for scalar in self.abi.scalars:
            if scalar.name in args:
                value = number(scalar, args[scalar.name])
                if isinstance(value, Diagnostic):
                    found.add(value)
                else:
                    scalars[scalar.name] = value
        if found.has_errors:
            raise LaunchError(found)
        return arrays, scalars

    def bind(
        self, arrays: Mapping[str, ArrayView], scalars: Mapping[str, Scalar], device: Device
    ) -> Binding:
        """Check all arguments for a launch on ``device``; raises :class:`LaunchError`."""
        found = Diagnostics()
        for spec in self.abi.tensors:
            found.extend(array_findings(spec, arrays[spec.name], self.abi, device.ordinal))
        env = {"device_sms": device.sms} | self._integers(scalars)
        owners: dict[str, str] = {}
        for spec in self.abi.tensors:
            found.extend(_bind_shape(spec, arrays[spec.name], env, owners))
        if found.has_errors:
            raise LaunchError(found)
        try:
            return self._evaluate(arrays, env, found)
        except HostExprError as error:
            problem = f"a launch expression of `{self.abi.name}` has no value: {error.problem}"
            found.add(Diagnostic.of(GUARD_FAILED, problem, facts={"text": error.text, **env}))
            raise LaunchError(found) from error

    def _integers(self, scalars: Mapping[str, Scalar]) -> dict[str, int]:
        specs = self.abi.scalars
        return {s.name: int(scalars[s.name]) for s in specs if s.dtype in INTEGER_SCALARS}

    def _evaluate(
        self, arrays: Mapping[str, ArrayView], env: Mapping[str, int], found: Diagnostics
    ) -> Binding:
        for expression, guard in self._guards:
            if not expression.evaluate(env):
                values = {name: env[name] for name in sorted(expression.names)}
                found.add(
                    Diagnostic.of(
                        GUARD_FAILED,
                        f"{guard.message} ({_figures(values)})",
                        guard.span,
                        facts={"guard": guard.text, **values},
                        helps=("use another kernel for this shape, or pad the arguments",),
                    )
                )
        if found.has_errors:  # outside its guards the other expressions mean nothing
            raise LaunchError(found)
        x, y, z = (expression.evaluate(env) for expression in self._grid)
        grid = (x, y, z)
        found.extend(_grid_findings(self.abi, grid))
        numbers = self._numbers(arrays, env, found)
        empty = 0 in grid
        maps = {} if empty else self._maps(arrays, env, found)
        sizes = {name: max(e.evaluate(env), 0) for name, e in self._workspaces.items()}
        if found.has_errors:
            raise LaunchError(found)
        return Binding(
            env=env, grid=grid, empty=empty, numbers=numbers, maps=maps, workspaces=sizes
        )

    def _numbers(
        self, arrays: Mapping[str, ArrayView], env: Mapping[str, int], found: Diagnostics
    ) -> dict[int, int]:
        numbers: dict[int, int] = {}
        for index, arg in enumerate(self.abi.args):
            if isinstance(arg, StrideArg):
                numbers[index] = arrays[arg.tensor].strides[arg.axis]
            elif isinstance(arg, DimArg):
                numbers[index] = env[arg.symbol]
                if not _fits(env[arg.symbol], arg.dtype):
                    problem = f"the extent {arg.symbol} = {env[arg.symbol]} does not fit a 32-bit"
                    found.add(
                        Diagnostic.of(
                            WRONG_SCALAR,
                            f"{problem} parameter; the limit is 2^31 - 1",
                            facts={"symbol": arg.symbol, "value": env[arg.symbol]},
                            helps=("build the kernel with 64-bit dimensions",),
                        )
                    )
        return numbers

    def _maps(
        self, arrays: Mapping[str, ArrayView], env: Mapping[str, int], found: Diagnostics
    ) -> dict[int, MapSpec]:
        maps: dict[int, MapSpec] = {}
        for index, arg in enumerate(self.abi.args):
            if not isinstance(arg, TensorMapArg):
                continue
            array = arrays[arg.tensor]
            dims = [e.evaluate(env) for e in self._dims[index]] if arg.dims is not None else None
            try:
                maps[index] = map_spec(arg, array, dims)
                problems = list(map_problems(maps[index], array.pointer))
            except MapError as error:
                problems = [str(error)]
            found.extend(_map_finding(arg, array, problem) for problem in problems)
        return maps


def number(spec: ScalarSpec, value: Any) -> Scalar | Diagnostic:
    """``value`` as the number that the scalar argument ``spec`` takes, or what is wrong with it."""
    bits = _INTEGER_BITS.get(spec.dtype)
    try:
        converted: Scalar = float(value) if bits is None else operator.index(value)
    except (TypeError, ValueError):
        return _scalar_finding(spec, value, f"is a {type(value).__name__}")
    if bits is not None and not _fits(int(converted), spec.dtype):
        return _scalar_finding(spec, value, f"is {value}, outside -2^{bits - 1}..2^{bits - 1}-1")
    if bits is None and math.isfinite(converted) and abs(converted) > _F32_MAX:
        return _scalar_finding(spec, value, f"is {value}, beyond the largest f32")
    return converted


def _fits(value: int, dtype: str) -> bool:
    half = 1 << (_INTEGER_BITS[dtype] - 1)
    return -half <= value < half


def _scalar_finding(spec: ScalarSpec, value: Any, problem: str) -> Diagnostic:
    kind = "an integer" if spec.dtype in INTEGER_SCALARS else "a real number"
    return Diagnostic.of(
        WRONG_SCALAR,
        f"scalar `{spec.name}` {problem}; the kernel takes {kind} ({spec.dtype})",
        facts={"scalar": spec.name, "dtype": spec.dtype, "value": str(value)[:80]},
    )


def _set_findings(abi: KernelAbi, args: Mapping[str, Any]) -> Iterator[Diagnostic]:
    names = [tensor.name for tensor in abi.tensors] + [scalar.name for scalar in abi.scalars]
    takes = f"`{abi.name}` takes {', '.join(names) or 'no arguments'}"
    for name in names:
        if name not in args:
            yield Diagnostic.of(
                ARGUMENT_SET, f"argument `{name}` is missing; {takes}", facts={"argument": name}
            )
    for name in args:
        if name not in names:
            yield Diagnostic.of(
                ARGUMENT_SET, f"unknown argument `{name}`; {takes}", facts={"argument": name}
            )


def _not_an_array(spec: TensorSpec, value: object, error: ArrayError) -> Diagnostic:
    return Diagnostic.of(
        NOT_AN_ARRAY,
        f"`{spec.name}` cannot be used as an array on a GPU: {error}",
        facts={"tensor": spec.name, "type": type(value).__qualname__},
    )


def _bind_shape(
    spec: TensorSpec, array: ArrayView, env: dict[str, int], owners: dict[str, str]
) -> Iterator[Diagnostic]:
    """Binds the symbols of ``spec`` in ``env`` and reports extents that disagree.

    ``owners`` keeps the name of the array that bound each symbol.
    """
    if len(array.shape) != len(spec.shape):
        return
    for axis, (dim, extent) in enumerate(zip(spec.shape, array.shape, strict=True)):
        if isinstance(dim, int):
            wanted, rule = dim, str(dim)
        else:
            wanted = env.setdefault(dim, extent)
            rule = f"{dim} = {wanted}, as in `{owners.setdefault(dim, spec.name)}`"
        if extent != wanted:
            yield Diagnostic.of(
                WRONG_SHAPE,
                f"`{spec.name}` has extent {extent} along axis {axis} (shape {array.shape}); "
                f"the kernel takes {rule}",
                facts={"tensor": spec.name, "axis": axis, "extent": extent, "expected": wanted},
            )


def _grid_findings(abi: KernelAbi, grid: tuple[int, int, int]) -> Iterator[Diagnostic]:
    cluster = abi.cluster or (1, 1, 1)
    rows = zip("xyz", grid, _GRID_LIMITS, cluster, abi.grid, strict=True)
    for axis, blocks, limit, clustered, text in rows:
        problem = ""
        if not 0 <= blocks <= limit:
            problem = f"; the limits are 0 and {limit}"
        elif blocks % clustered:
            problem = f", which is not a multiple of the cluster's {clustered}"
        if problem:
            yield Diagnostic.of(
                GRID_LIMIT,
                f"the grid of `{abi.name}` has {blocks} blocks along {axis} ({text}){problem}",
                facts={"axis": axis, "blocks": blocks, "limit": limit, "cluster": clustered},
            )


def _map_finding(arg: TensorMapArg, array: ArrayView, problem: str) -> Diagnostic:
    return Diagnostic.of(
        TENSOR_MAP,
        f"`{arg.tensor}` (shape {array.shape}, strides {array.strides}, {array.dtype}) cannot be "
        f"read through a tensor map: {problem}",
        facts={
            "tensor": arg.tensor,
            "shape": array.shape,
            "strides": array.strides,
            "box": arg.box,
            "swizzle": arg.swizzle,
            "address": array.pointer,
        },
        helps=(f"pass an aligned, contiguous copy of `{arg.tensor}`",),
    )


def _figures(values: Mapping[str, int]) -> str:
    return ", ".join(f"{name} = {value}" for name, value in values.items())
