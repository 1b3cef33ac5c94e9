"""Values of the simulator: broadcasting, and fragments as matrices.

Shapes are those of :mod:`cake.ops.machine`: a scalar is 0-d or (threads,), anything held in
registers is (threads, registers).
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cake.ir.fragments import col_register, coordinates, row_register
from cake.ir.types import ColVector, Fragment, RowVector, Scalar, Type


def broadcast_value(value: Any, from_type: Type, to_type: Type) -> Any:
    """``value`` of ``from_type`` in a shape that combines with values of ``to_type``.

    The rules are those of :func:`cake.ops.check.broadcast`. The result may be a view of ``value``.
    """
    value = np.asarray(value)
    if isinstance(from_type, Scalar):
        return value[:, None] if value.ndim == 1 and not isinstance(to_type, Scalar) else value
    if isinstance(to_type, Fragment) and isinstance(from_type, RowVector):
        return value[:, row_registers(to_type)]
    if isinstance(to_type, Fragment) and isinstance(from_type, ColVector):
        return value[:, col_registers(to_type)]
    return value


@lru_cache(maxsize=256)
def row_registers(t: Fragment) -> Any:
    """Index in the row vector of each register of a fragment: int array (registers,)."""
    return np.array([row_register(t, i) for i in range(t.registers)])


@lru_cache(maxsize=256)
def col_registers(t: Fragment) -> Any:
    """Index in the column vector of each register of a fragment: int array (registers,)."""
    return np.array([col_register(t, i) for i in range(t.registers)])


def to_matrix(t: Fragment, registers: Any) -> Any:
    """The tile of shape ``t.shape`` that a fragment's registers (threads, registers) hold."""
    matrix = np.empty(t.shape, registers.dtype)
    matrix[coordinates(t)] = registers
    return matrix


def from_matrix(t: Fragment, matrix: Any) -> Any:
    """Registers (threads, registers) of a fragment that holds ``matrix`` of shape ``t.shape``."""
    return matrix[coordinates(t)]
