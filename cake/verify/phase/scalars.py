"""Scalars of one unit at given sizes, as far as they follow from sizes, coordinates and indices.

An expression is compiled once to a function of the unit's state. A value is a Python number if it
is equal in all threads of the unit, an int or bool array (threads,) if it differs between them,
and ``UNKNOWN`` where it depends on data.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import numpy as np

from cake.ir.dtypes import DType
from cake.ir.nodes import Call, Const, DimRef, Expr, Static, TensorRef, VarRef
from cake.ir.types import WARP, Scalar


class Unknown:
    """The value of something that depends on data."""

    def __repr__(self) -> str:
        return "UNKNOWN"


UNKNOWN: Final = Unknown()

Value = Any
"""int, float, bool, an array (threads,), or UNKNOWN."""


class DataSource(Protocol):
    """Chooses contents of integer tensors that the program reads and never writes."""

    def element(self, tensor: str, index: tuple[int, ...]) -> int: ...


@dataclass(slots=True)
class UnitState:
    """A unit while its events are listed: its variables, its place, and its thread indices.

    ``mask``: the active threads; None if all are, ``UNKNOWN`` if it depends on data.
    """

    threads: int
    rank: int
    data: DataSource
    vars: dict[str, Value]
    mask: Value = None
    index: Any = field(init=False)

    def __post_init__(self) -> None:
        self.index = np.arange(self.threads)


Compiled = Callable[[UnitState], Value]


def _logical_and(a: Value, b: Value) -> Value:
    return np.logical_and(a, b) if _arrays(a, b) else bool(a and b)


def _logical_or(a: Value, b: Value) -> Value:
    return np.logical_or(a, b) if _arrays(a, b) else bool(a or b)


def _not(a: Value) -> Value:
    return np.logical_not(a) if _arrays(a) else not a


def _min(a: Value, b: Value) -> Value:
    return np.minimum(a, b) if _arrays(a, b) else min(a, b)


def _max(a: Value, b: Value) -> Value:
    return np.maximum(a, b) if _arrays(a, b) else max(a, b)


def _arrays(*values: Value) -> bool:
    return any(isinstance(v, np.ndarray) for v in values)


_OPERATORS: dict[str, Callable[..., Value]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "mul_wide": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
    "neg": operator.neg,
    "abs": abs,
    "min": _min,
    "max": _max,
    "lt": operator.lt,
    "le": operator.le,
    "gt": operator.gt,
    "ge": operator.ge,
    "eq": operator.eq,
    "ne": operator.ne,
    "and_": _logical_and,
    "or_": _logical_or,
    "not_": _not,
    "shl": operator.lshift,
    "shr": operator.rshift,
    "bitand": operator.and_,
    "bitor": operator.or_,
    "bitxor": operator.xor,
}
_DIVISIONS = frozenset({"floordiv", "mod"})
_INDICES: dict[str, Compiled] = {
    "lane": lambda u: u.index % WARP,
    "warp": lambda u: u.index // WARP if u.threads > WARP else 0,
    "thread": lambda u: u.index,
    "elect": lambda u: u.index % WARP == 0,
    "cta_rank": lambda u: u.rank,
}


class Compiler:
    """Compiles the expressions of one program.

    ``chosen`` names the tensors whose elements a :class:`DataSource` may choose.
    """

    def __init__(self, chosen: frozenset[str]) -> None:
        self.chosen = chosen
        self._done: dict[int, tuple[Expr, Compiled]] = {}

    def compile(self, e: Expr) -> Compiled:
        """The function that gives the expression's value."""
        found = self._done.get(id(e))
        if found is None:
            # The expression is kept, so that its identity stays its own.
            found = self._done[id(e)] = (e, self._compile(e))
        return found[1]

    def _compile(self, e: Expr) -> Compiled:
        if isinstance(e, Const | Static):
            value = e.value if isinstance(e.value, int | float) else UNKNOWN
            return lambda u: value
        if isinstance(e, VarRef | DimRef):
            name = e.name
            return lambda u: u.vars.get(name, UNKNOWN)
        if not isinstance(e, Call):
            return _unknown
        if e.op in _INDICES:
            return _INDICES[e.op]
        if e.op == "select":
            return self._select(*(self.compile(a) for a in e.args if a is not None))
        if e.op == "cast" and _whole(e.type) and e.args[0] is not None:
            source = e.args[0].type
            return self.compile(e.args[0]) if _whole(source) else _unknown
        if e.op == "load":
            return self._element(e)
        if e.op in ("and_", "or_"):
            a, b = (self.compile(x) for x in e.args if x is not None)
            return _shortcut(a, b, e.op == "or_")
        if e.op in _OPERATORS and isinstance(e.type, Scalar):
            return self._operator(e)
        return _unknown

    def _operator(self, e: Call) -> Compiled:
        function = _OPERATORS[e.op]
        parts = [self.compile(a) for a in e.args if a is not None]
        if e.op in _DIVISIONS:
            return _division(function, *parts)
        if len(parts) == 1:
            (only,) = parts

            def unary(u: UnitState) -> Value:
                x = only(u)
                return UNKNOWN if x is UNKNOWN else function(x)

            return unary
        first, second = parts

        def binary(u: UnitState) -> Value:
            x, y = first(u), second(u)
            return UNKNOWN if x is UNKNOWN or y is UNKNOWN else function(x, y)

        return binary

    def _select(self, cond: Compiled, yes: Compiled, no: Compiled) -> Compiled:
        def select(u: UnitState) -> Value:
            c = cond(u)
            if c is UNKNOWN:
                return UNKNOWN
            if not isinstance(c, np.ndarray):
                return yes(u) if c else no(u)
            a, b = yes(u), no(u)
            return UNKNOWN if a is UNKNOWN or b is UNKNOWN else np.where(c, a, b)

        return select

    def _element(self, e: Call) -> Compiled:
        place, width, mask = e.args[:3]
        readable = isinstance(place, TensorRef) and place.tensor in self.chosen
        if not readable or width is not None or mask is not None or not _whole(e.type):
            return _unknown
        assert isinstance(place, TensorRef)
        tensor, index = place.tensor, [self.compile(i) for i in place.index]

        def element(u: UnitState) -> Value:
            at = tuple(i(u) for i in index)
            known = all(isinstance(i, int) for i in at)
            return u.data.element(tensor, at) if known else UNKNOWN

        return element


def _unknown(u: UnitState) -> Value:
    return UNKNOWN


def _shortcut(a: Compiled, b: Compiled, decisive: bool) -> Compiled:
    """``and`` and ``or``: one operand may decide whatever the other is."""
    function = _logical_or if decisive else _logical_and

    def value(u: UnitState) -> Value:
        x, y = a(u), b(u)
        if x is UNKNOWN or y is UNKNOWN:
            other = y if x is UNKNOWN else x
            certain = isinstance(other, bool) and other is decisive
            return decisive if certain else UNKNOWN
        return function(x, y)

    return value


def _division(function: Callable[..., Value], a: Compiled, b: Compiled) -> Compiled:
    def value(u: UnitState) -> Value:
        x, y = a(u), b(u)
        if x is UNKNOWN or y is UNKNOWN or not np.all(y):
            return UNKNOWN
        return function(x, y)

    return value


def _whole(t: object) -> bool:
    dtype: DType | None = getattr(t, "dtype", None)
    return isinstance(t, Scalar) and dtype is not None and (dtype.is_int or dtype.kind == "bool")
