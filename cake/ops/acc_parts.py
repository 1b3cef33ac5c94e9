"""The parts of an accumulator fragment that folds and scans walk over: rows, or columns.

A lane holds a few rows of its warp's tile, and of each of them pairs of neighbouring columns (see
:mod:`cake.ir.fragments`). Folding *along rows* keeps a value for each row and walks over the lane's
columns; folding *along columns* keeps one for each column and walks over its rows. The two differ
in the figures of :class:`Axis` only.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from cake.ir.dtypes import DType
from cake.ir.nodes import Call
from cake.ir.types import WARP, ColVector, Fragment, RowVector
from cake.ops import check, folds
from cake.ops.base import TypingContext, operand


@dataclass(frozen=True, slots=True, kw_only=True)
class Axis:
    """What is kept of a fragment, and how the walk over the rest goes.

    Element ``e`` of a lane's walk lies at ``e // 2 * outer + e % 2 * inner`` plus the lane's own
    position. ``group`` names the lanes that hold the same row or column, ``steps`` the XOR
    distances at which they exchange.
    """

    keeps: Literal["row", "column"]
    short: Literal["row", "col"]
    outer: int
    inner: int
    group: str
    steps: tuple[int, ...]

    def kept(self, t: Fragment) -> int:
        """Rows or columns that a lane holds."""
        return t.registers // self.walked(t)

    def walked(self, t: Fragment) -> int:
        """Elements of each of them that a lane holds."""
        columns = t.shape[1] // 4
        return columns if self.keeps == "row" else t.registers // columns

    def register(self, t: Fragment, kept: str, walked: str) -> str:
        """C expression of a register's number; the operands are atoms."""
        row, c = (kept, walked) if self.keeps == "row" else (walked, kept)
        return f"({row} / 2 * {t.shape[1] // 8} + {c} / 2) * 4 + {row} % 2 * 2 + {c} % 2"

    def vector(self, t: Fragment, dtype: DType, *, partial: bool) -> RowVector | ColVector:
        """The type of one value for each row or column."""
        if self.keeps == "row":
            return RowVector(dtype, t.shape[0], t.warps, partial)
        return ColVector(dtype, t.shape[1], partial)

    def lane_position(self, t: Fragment) -> str:
        """C expression of where a lane's walk begins."""
        if self.keeps == "row":
            return "lane % 4 * 2"
        warp = f"warp_in_unit * {t.shape[0] // t.warps} + " if t.warps > 1 else ""
        return f"{warp}lane / 4"

    def lane_positions(self, t: Fragment) -> Any:
        """The same for each thread, as an int array (threads,)."""
        thread = np.arange(WARP * t.warps)
        if self.keeps == "row":
            return thread % 4 * 2
        return thread // WARP * (t.shape[0] // t.warps) + thread % WARP // 4

    def distance(self, element: Any) -> Any:
        """Where element ``element`` of a walk lies, counted from the lane's position."""
        return element // 2 * self.outer + element % 2 * self.inner


ROWS = Axis(keeps="row", short="row", outer=8, inner=1, group="quad", steps=(1, 2))
"""A value for each row: a quad's four lanes hold it."""
COLUMNS = Axis(keeps="column", short="col", outer=16, inner=8, group="octet", steps=(4, 8, 16))
"""A value for each column: an octet, the eight lanes of equal ``lane % 4``, holds it."""


@lru_cache(maxsize=64)
def registers_of(axis: Axis, t: Fragment) -> Any:
    """Registers of a lane by what is kept and by the walk: int array (kept, walked)."""
    atoms = t.shape[1] // 8
    row, c = np.arange(ROWS.kept(t))[:, None], np.arange(2 * atoms)[None, :]
    by_row = ((row // 2) * atoms + c // 2) * 4 + (row % 2) * 2 + c % 2
    return by_row if axis.keeps == "row" else by_row.T


def acc_fragment(
    t: TypingContext, call: Call, name: str, dtypes: tuple[DType, ...] = folds.DTYPES
) -> Fragment:
    """An operand that is an accumulator fragment of one of ``dtypes``."""
    e, fragment = check.fragment(t, operand(call, name), name)
    if fragment.layout != "acc":
        t.fail(f"{name} must have the acc layout, got {fragment}", e)
    if fragment.dtype not in dtypes:
        admitted = ", ".join(d.name for d in dtypes)
        t.fail(f"{name} must hold {admitted}, got {fragment.dtype}", e)
    return fragment
