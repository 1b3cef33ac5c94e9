"""Arrays for a simulation without a workload: made from the annotations of the schedules."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal

import click
import numpy as np

from cake.codegen.host import HostText
from cake.codegen.hostexpr import HostExpr
from cake.ir.dtypes import DType, numpy_dtype
from cake.ir.nodes import TensorRef, walk_calls
from cake.ir.program import Program, ScalarParam, TensorParam
from cake.kernels import poisoned
from cake.lang.printer import print_expr
from cake.ops.base import Access, lookup


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrays:
    """Arrays by name; those in ``garbage`` have no contents until a schedule writes them."""

    tensors: Mapping[str, Any]
    garbage: frozenset[str]


MAX_BYTES = 1 << 30
"""Of all tensors of a simulation: more would take hours."""

Action = Literal["read", "write", "atomic"]


def written(program: Program) -> frozenset[str]:
    """The global tensors that a program writes, atomics included."""
    return _touched(program, "write", "atomic")


def _touched(program: Program, *actions: Action) -> frozenset[str]:
    """The global tensors that a program accesses in one of these ways."""
    found = set()
    for role in program.roles:
        for call in walk_calls(role.body):
            primitive = lookup(call.op)
            assert primitive is not None  # the elaborator admits no other
            for effect in primitive.effects(call):
                if isinstance(effect, Access) and effect.action in actions:
                    place = call.args[effect.operand]
                    if isinstance(place, TensorRef):
                        found.add(place.tensor)
    return frozenset(found)


def generated(programs: Sequence[Program], dims: Mapping[str, int], seed: int) -> Arrays:
    """An array for every tensor of ``programs``.

    A tensor that is written before it is read holds garbage. Of the others, those that are only
    updated by atomics start at zero; floats are drawn from a normal distribution, integers from
    {0, 1}. Raises :class:`click.UsageError` for dimensions that are missing or unknown, and for
    tensors that two schedules declare differently.
    """
    garbage: set[str] = set()
    sums: set[str] = set()
    known: set[str] = set()
    for program in programs:
        used, updated = _touched(program, "read"), _touched(program, "atomic")
        garbage |= written(program) - used - updated - known
        sums |= updated - used - known
        known |= written(program) | used
    shapes = _shapes(programs, dims)
    check_size(sum(prod(shape) * dtype.bytes for dtype, shape in shapes.values()))
    arrays = {}
    for name, (dtype, shape) in shapes.items():
        # Named streams: a tensor keeps its numbers when another one comes or goes.
        rng = np.random.default_rng([seed, zlib.crc32(name.encode())])
        if name in garbage:
            arrays[name] = poisoned(shape, numpy_dtype(dtype))
        elif name in sums:
            arrays[name] = np.zeros(shape, numpy_dtype(dtype))
        else:
            arrays[name] = _drawn(dtype, shape, rng)
    return Arrays(tensors=arrays, garbage=frozenset(garbage))


def _drawn(dtype: DType, shape: tuple[int, ...], rng: np.random.Generator) -> Any:
    numbers: Any = rng.standard_normal(shape) if dtype.is_float else rng.integers(0, 2, shape)
    return numbers.astype(numpy_dtype(dtype))


def _shapes(
    programs: Sequence[Program], dims: Mapping[str, int]
) -> dict[str, tuple[DType, tuple[int, ...]]]:
    needed = list(dict.fromkeys(d for p in programs for d in p.dims))
    if missing := [d for d in needed if d not in dims]:
        wanted = " ".join(f"--dim {d}=..." for d in missing)
        raise click.UsageError(f"the extent of {', '.join(missing)} is not known: {wanted}")
    if unknown := [d for d in dims if d not in needed]:
        listed = ", ".join(needed) or "none"
        raise click.UsageError(f"--dim: there is no dimension {unknown[0]} (there are {listed})")
    shapes: dict[str, tuple[DType, tuple[int, ...]]] = {}
    first: dict[str, TensorParam] = {}
    for t in (t for p in programs for t in p.tensors):
        other = first.setdefault(t.name, t)
        if (t.dtype, t.shape) != (other.dtype, other.shape):
            raise click.UsageError(
                f"two schedules declare tensor {t.name} differently; choose one with --schedule"
            )
        shapes[t.name] = (t.dtype, tuple(dims[d] if isinstance(d, str) else d for d in t.shape))
    return shapes


def check_size(total: int) -> None:
    """Refuse arrays that no one would wait for, before they fill the memory."""
    if total > MAX_BYTES:
        raise click.UsageError(
            f"the tensors take {total} bytes, a simulation at most {MAX_BYTES}: use a smaller shape"
        )


def check_scalars(programs: Sequence[Program], scalars: Mapping[str, float]) -> None:
    """Every scalar parameter has a value, and every value a parameter."""
    names = list(
        dict.fromkeys(q.name for p in programs for q in p.params if isinstance(q, ScalarParam))
    )
    if missing := [name for name in names if name not in scalars]:
        wanted = " ".join(f"--scalar {name}=..." for name in missing)
        raise click.UsageError(f"the value of {', '.join(missing)} is not known: {wanted}")
    if unknown := [name for name in scalars if name not in names]:
        listed = ", ".join(names) or "none"
        raise click.UsageError(f"--scalar: there is no {unknown[0]} (there are {listed})")


def check_guards(
    programs: Sequence[Program], dims: Mapping[str, int], scalars: Mapping[str, float]
) -> None:
    """Every ``require(...)`` holds; a launch would refuse the arguments otherwise."""
    env = {**{name: int(v) for name, v in scalars.items() if v == int(v)}, **dims}
    for program in programs:
        host = HostText(program)
        for guard in program.guards:
            if not HostExpr(host.of(guard.cond)).evaluate(env):
                condition = print_expr(program, guard.cond)
                sizes = " ".join(f"{name}={value}" for name, value in dims.items())
                raise click.UsageError(
                    f"{program.name}: require({condition}) does not hold at {sizes}"
                )
