"""Scalars of a program at concrete sizes, as far as they follow from sizes and coordinates."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any

from cake.ir.nodes import Call, Const, DimRef, Expr, Static, VarRef
from cake.ir.program import Grid, Program, ScalarParam, Tiles
from cake.ir.types import Scalar
from cake.ops.raster import tile_at, walk_length, walk_of

if TYPE_CHECKING:
    from cake.verify.integers import Integers

Value = int | float | bool | None
"""None: not known without data."""

MAX_SAMPLES = 8
"""Sizes that are tried where a proof fails."""
MAX_TRIES = 200
"""Sizes that are drawn to find so many which the guards admit."""

OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "min": min,
    "max": max,
    "neg": operator.neg,
    "abs": abs,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and_": lambda a, b: bool(a and b),
    "or_": lambda a, b: bool(a or b),
    "not_": operator.not_,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
}


def evaluate(e: Expr, values: Mapping[str, Value]) -> Value:
    """The value of a scalar expression, None if it needs data or thread indices."""
    if isinstance(e, Const | Static):
        return e.value if isinstance(e.value, int | float | bool) else None
    if isinstance(e, VarRef | DimRef):
        return values.get(e.name)
    if not isinstance(e, Call):
        return None
    if e.op == "cta_rank":
        return 0
    args = [None if a is None else evaluate(a, values) for a in e.args]
    if e.op == "cast":
        whole = isinstance(e.type, Scalar) and e.type.dtype.is_int
        return int(args[0]) if whole and args[0] is not None else args[0]
    if e.op == "select":
        return None if args[0] is None else args[1] if args[0] else args[2]
    function = OPERATORS.get(e.op)
    if function is None or any(a is None for a in args):
        return None
    try:
        result: Value = function(*args)
    except (ZeroDivisionError, ValueError):
        return None
    return result


def may_be_empty(program: Program, dim: str) -> bool:
    """Whether a kernel may run while a dimension is 0.

    Not if a guard excludes it, or if the grid or the set of tiles is empty then: nothing is
    launched.
    """
    sizes: dict[str, Value] = {dim: 0}
    for let in program.lets:
        sizes[let.targets[0]] = evaluate(let.value, sizes)
    extents = (e for decl in (*program.find(Grid), *program.find(Tiles)) for e in decl.extents)
    empty = any(evaluate(e, sizes) == 0 for e in extents)
    return not empty and all(evaluate(g.cond, sizes) is not False for g in program.guards)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """Sizes that the guards admit, with the tiles of one CTA.

    ``values`` holds dimensions, scalar parameters, grid coordinates and kernel-level values;
    ``tiles`` the coordinates that a persistent loop of the CTA visits.
    """

    sizes: Mapping[str, int]
    values: Mapping[str, Value]
    tiles: tuple[tuple[int, ...], ...]

    def __str__(self) -> str:
        return ", ".join(f"{k} = {v}" for k, v in self.sizes.items()) or "any size"


def samples(program: Program, integers: Integers) -> Iterator[Sample]:
    """Different sizes, small and around multiples of the tile sizes; the same at every call."""
    names = [*program.dims, *(p.name for p in program.params if isinstance(p, ScalarParam))]
    choices = [_candidates(name, integers) for name in names]

    def admitted(picked: tuple[int, ...]) -> bool:
        sizes = dict(zip(names, picked, strict=True))
        return all(evaluate(g.cond, sizes) is True for g in program.guards)

    seen: set[tuple[int, ...]] = set()
    for picked in _tried(choices, admitted):
        if picked in seen:
            continue
        if len(seen) == MAX_SAMPLES:
            return
        seen.add(picked)
        sizes = dict(zip(names, picked, strict=True))
        yield _sample(program, sizes, last=len(seen) % 2 == 0)


def _tried(
    choices: Sequence[Sequence[int]], admitted: Callable[[tuple[int, ...]], bool]
) -> Iterator[tuple[int, ...]]:
    """One size after another being 0, where it may be; then sizes drawn at random."""
    usual = [values[len(values) // 2] for values in choices]
    small = [values[values[0] == 0] for values in choices]
    for i, values in enumerate(choices):
        if values[0] == 0:
            emptied = ((*others[:i], 0, *others[i + 1 :]) for others in (usual, small))
            yield from islice(filter(admitted, emptied), 1)
    choose = Random(0).choice
    yield from filter(admitted, (tuple(map(choose, choices)) for _ in range(MAX_TRIES)))


def _candidates(name: str, integers: Integers) -> list[int]:
    """Sizes of one dimension: few tiles, with and without a remainder."""
    value = integers.values.get(name)
    if value is None:
        return [0, 1, 2, 5]
    (key,) = value.atoms
    unit = value.terms[0][1]
    steps = sorted(integers.atoms.divisors_of(key) | {1}, reverse=True)[:2]
    found = {n * q + extra for n in steps for q in (1, 2, 3, 5, 9) for extra in (0, 1)}
    found |= {1, *(n - 1 for n in steps if n > 1)}
    if integers.atoms.get(key).lows[0].value.constant == 0:
        found.add(0)
    return [unit * n for n in sorted(found)]


def _sample(program: Program, sizes: dict[str, int], *, last: bool) -> Sample:
    values: dict[str, Value] = dict(sizes)
    tiles: tuple[tuple[int, ...], ...] = ()
    for let in program.lets:
        values[let.targets[0]] = evaluate(let.value, values)
    for decl in (*program.find(Grid), *program.find(Tiles)):
        extents = [evaluate(e, values) for e in decl.extents]
        if any(not isinstance(n, int) or n < 1 for n in extents):
            continue
        counts = [n for n in extents if isinstance(n, int)]
        if isinstance(decl, Grid):
            values |= {v: n - 1 if last else 0 for v, n in zip(decl.vars, counts, strict=True)}
        else:
            tiles = _some_tiles(program, decl, counts)
    for let in program.lets:
        values[let.targets[0]] = evaluate(let.value, values)
    return Sample(sizes=sizes, values=values, tiles=tiles)


def _some_tiles(program: Program, decl: Tiles, extents: list[int]) -> tuple[tuple[int, ...], ...]:
    walk = walk_of(program, decl)
    total = walk_length(walk, extents)
    order = dict.fromkeys((0, total // 2, total - 1))
    found = (tile_at(walk, extents, i) for i in order)
    return tuple(t for t in found if t is not None)
