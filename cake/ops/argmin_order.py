"""What "better" means for the argmin and argmax primitives: one table."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ops import elementwise_numpy as fn


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One order of f32 values.

    ``sign`` is "strictly better" in C, ``ptx_better`` in PTX, ``ptx_fold`` the better of two there.
    ``better``, ``best`` and ``first`` (index of the first best along an axis) are numpy. ``worst``
    loses against all others.
    """

    name: str
    sign: str
    ptx_better: str
    ptx_fold: str
    better: Callable[[Any, Any], Any]
    best: Callable[[Any, Any], Any]
    first: Callable[..., Any]
    worst: float
    word: str


ORDERS = (
    Order(
        name="argmin",
        sign="<",
        ptx_better="lt",
        ptx_fold="min",
        better=np.less,
        best=fn.minimum,
        first=np.argmin,
        worst=np.inf,
        word="smallest",
    ),
    Order(
        name="argmax",
        sign=">",
        ptx_better="gt",
        ptx_fold="max",
        better=np.greater,
        best=fn.maximum,
        first=np.argmax,
        worst=-np.inf,
        word="largest",
    ),
)
