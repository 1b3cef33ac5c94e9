"""Places along one axis of a buffer, in this round of a loop or in any earlier one."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.verify.poly import ZERO, Poly


@dataclass(frozen=True, slots=True)
class Offset:
    """A place along an axis: ``base`` is equal in all threads of the role, ``part`` is made of the
    unit's index and thread indices. None: anywhere. With a ``stride``, any of the places ``base``,
    ``base - stride``, ..., ``base - most * stride`` that earlier rounds of a loop used."""

    base: Poly | None
    part: Poly = ZERO
    stride: int = 0
    most: float = math.inf

    def mapped(self, change: Callable[[Poly], Poly]) -> Offset:
        base = None if self.base is None else change(self.base)
        return self if base == self.base else Offset(base, self.part, self.stride, self.most)

    def earlier(self, turn: Poly, rounds: int | None) -> Offset:
        """The place as seen from the next round of a loop, or from any later one; ``rounds`` is
        how many the loop makes, if that is a number."""
        parts = None if self.base is None else self.base.split(str(turn))
        if self.base is None or (parts is not None and not parts[0].terms):
            return self
        stride = 0 if parts is None else parts[0].constant or 0
        if stride == 0 or self.stride not in (0, stride):
            return Offset(None)
        if self.stride:
            return self
        most = math.inf if rounds is None else rounds - 2
        before = self.base.replace({str(turn): turn - 1})
        return Offset(before, self.part, stride, most)


def distance(x: Offset, y: Offset) -> int | None:
    """How far apart two places are, the units' own parts aside; None if it is not known."""
    return None if x.base is None or y.base is None else (x.base - y.base).constant


def meet(low: Any, high: Any, first: Any, last: Any, earlier: Offset) -> Any:
    """Whether [low, high), moved back as far as ``earlier`` may be, meets [first, last)."""
    back: Any = 0
    stride = earlier.stride
    if stride > 0:
        back = stride * np.clip(np.floor((low - last) / stride) + 1, 0, earlier.most)
    elif stride < 0:
        back = stride * np.clip(np.floor((first - high) / -stride) + 1, 0, earlier.most)
    # Where an end is infinite, what is not a number meets.
    return ~((low - back >= last) | (high - back <= first))


def nearest(gap: Any, n: int, m: int, earlier: Offset) -> Any:
    """Gaps, moved back as many strides as bring them into (-n, m) if any number does."""
    stride = earlier.stride
    if stride > 0:
        return gap - stride * np.clip((gap - m) // stride + 1, 0, earlier.most)
    if stride < 0:
        return gap - stride * np.clip((-n - gap) // -stride + 1, 0, earlier.most)
    return gap
