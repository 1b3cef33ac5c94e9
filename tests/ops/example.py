"""What an example program of the registry's tests is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.program import Program
from tests.ops.schedules import accepted

Arrays = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """A program with its arrays. ``expected``: arrays by name after the run, from those before.

    ``tolerance``: relative error allowed between simulator and GPU, 0 asks for equal bits.
    ``free`` names arrays whose contents depend on the order of threads.
    """

    make: Callable[[], Program]
    arrays: Callable[[], Arrays]
    expected: Callable[[Arrays], Arrays]
    tolerance: float = 0.0
    free: tuple[str, ...] = ()


def warp(body: str, decls: str = "", *, params: str, role: str = "warps=1") -> Any:
    """A one-role program for sm_90a, made when it is asked for."""
    return lambda: accepted(body, decls, role=role, params=params)


def zeros(*shape: int, dtype: Any = np.float32) -> Any:
    return np.zeros(shape, dtype)
