"""Integers and truth values of a program at concrete dimensions, for trip counts and conditions.

A value is a numpy array that broadcasts: its last axis runs over the threads of a role, axes in
front of it over samples of the enclosing loops and of the grid. None stands for what only the data
know, such as a loaded element.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from cake.ir.nodes import Assign, Block, Call, Const, DimRef, Expr, Static, VarRef, walk_stmts
from cake.ir.types import WARP, Scalar
from cake.ops.elementwise import TABLE

Value = Any
"""An array, or None."""

LOOP_SAMPLES = 16
GRID_SAMPLES = 3


def samples(n: int, limit: int) -> tuple[Any, Any]:
    """Positions in ``range(n)`` and how many positions each stands for.

    All of them up to ``limit``; beyond that the first, the last and evenly spaced ones, so that
    what happens only at the ends keeps its weight.
    """
    if n <= limit:
        return np.arange(n), np.ones(n)
    inner = limit - 2
    middle = 1 + (2 * np.arange(inner) + 1) * (n - 2) // (2 * inner)
    return np.concatenate([[0], middle, [n - 1]]), np.array([1.0, *[(n - 2) / inner] * inner, 1.0])


class Values:
    """Variables of one role, and the axes they are sampled along."""

    def __init__(self, dims: Mapping[str, int | float], threads: int, unit_threads: int) -> None:
        self.dims = dims
        self.variables: dict[str, Value] = {}
        self._weights: list[Any] = []
        index = np.arange(threads) % unit_threads
        self._places = {
            "lane": index % WARP,
            "warp": index // WARP,
            "thread": index,
            "cta_rank": np.zeros(1, np.int64),
        }

    def eval(self, e: Expr) -> Value:
        """The value of a scalar expression, None if it is not known."""
        if isinstance(e, Const | Static):
            return np.asarray(e.value) if isinstance(e.value, bool | int | float) else None
        if isinstance(e, DimRef):
            return np.asarray(self.dims[e.name]) if e.name in self.dims else None
        if isinstance(e, VarRef):
            return self.variables.get(e.name)
        return self._call(e) if isinstance(e, Call) else None

    def _call(self, e: Call) -> Value:
        if e.op in self._places:
            return self._places[e.op]
        if e.op not in TABLE and e.op != "cast":
            return None
        operands = [None if a is None else self.eval(a) for a in e.args]
        if e.op == "cast":
            return _cast(operands[0], e)
        if any(v is None for v in operands):
            return None
        with np.errstate(all="ignore"):
            return np.asarray(TABLE[e.op].numpy(*operands))

    @contextmanager
    def axis(self, weights: Any) -> Iterator[Any]:
        """Samples along a new axis, in front of those there are; yields its shape for positions."""
        self._weights.append(weights)
        try:
            yield (-1, *[1] * len(self._weights))
        finally:
            self._weights.pop()

    def expectation(self, sampled: Any) -> Any:
        """Sum of ``sampled`` over all sample axes by weight; the last axis stays."""
        shape = (*[len(w) for w in reversed(self._weights)], np.shape(sampled)[-1])
        total = np.broadcast_to(sampled, shape)
        for w in reversed(self._weights):
            total = np.tensordot(w, total, axes=1)
        return total

    def forget(self, *blocks: Block) -> None:
        """Drop the values of outer variables that ``blocks`` assign."""
        for block in blocks:
            for s in walk_stmts(block):
                if isinstance(s, Assign):
                    for name in s.targets:
                        self.variables.pop(name, None)

    def merge(self, cond: Value, then: Mapping[str, Value], other: Mapping[str, Value]) -> None:
        """The variables behind an ``if`` whose branches left ``then`` and ``other``."""
        for name in then.keys() | other.keys():
            a, b = then.get(name), other.get(name)
            if a is b:
                self.variables[name] = a
            elif a is None or b is None or cond is None:
                self.variables.pop(name, None)
            else:
                self.variables[name] = np.where(cond, a, b)


def _cast(value: Value, e: Call) -> Value:
    if value is None or not isinstance(e.type, Scalar):
        return None
    return value.astype(np.float64 if e.type.dtype.is_float else np.int64)
