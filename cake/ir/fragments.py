"""How fragments lie over lanes (PTX ISA: mma.m16n8k16 fragments; wgmma.m64nNk16 D fragment).

For an ``acc`` fragment of R rows and C columns over W warps, warp w owns rows [w*R/W, (w+1)*R/W).
Within a warp the tile is made of 16x8 atoms, row-major; register ((mi * C/8) + j) * 4 + q of lane
l holds row mi*16 + l//4 + 8*(q>>1), column j*8 + 2*(l%4) + (q&1). Two neighbouring atoms read as
16-bit pairs are an A operand of mma.m16n8k16 / wgmma, so A operands need no layout of their own.

A ``b`` fragment (K, N) is made of 16x8 atoms (k, n); register ((ki * N/8) + j) * 4 + q holds
k = ki*16 + 2*(l%4) + (q&1) + 8*(q>>1), n = j*8 + l//4.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from cake.ir.types import WARP, ColVector, Fragment, RowVector


@lru_cache(maxsize=256)
def coordinates(t: Fragment) -> tuple[Any, Any]:
    """Row and column of every register: two int arrays of shape (threads, registers)."""
    rows, cols = t.shape
    lane = np.arange(WARP)[None, :, None]
    warp = np.arange(t.warps)[:, None, None]
    reg = np.arange(t.registers)[None, None, :]
    q, atom = reg % 4, reg // 4
    per_row = cols // 8
    outer, j = atom // per_row, atom % per_row
    if t.layout == "acc":
        r = warp * (rows // t.warps) + outer * 16 + lane // 4 + 8 * (q >> 1)
        c = j * 8 + 2 * (lane % 4) + (q & 1)
    else:
        r = outer * 16 + 2 * (lane % 4) + (q & 1) + 8 * (q >> 1)
        c = j * 8 + lane // 4
    threads = WARP * t.warps
    shape = (t.warps, WARP, t.registers)
    flat = (threads, t.registers)
    return (
        np.broadcast_to(r, shape).reshape(flat).copy(),
        np.broadcast_to(c, shape).reshape(flat).copy(),
    )


@lru_cache(maxsize=256)
def row_coordinates(t: RowVector) -> Any:
    """Row of every register of a row vector: int array (threads, registers)."""
    lane = np.arange(WARP)[None, :, None]
    warp = np.arange(t.warps)[:, None, None]
    reg = np.arange(t.registers)[None, None, :]
    r = warp * (t.rows // t.warps) + (reg // 2) * 16 + lane // 4 + 8 * (reg % 2)
    return np.broadcast_to(r, (t.warps, WARP, t.registers)).reshape(-1, t.registers).copy()


@lru_cache(maxsize=256)
def col_coordinates(t: ColVector, warps: int) -> Any:
    """Column of every register of a column vector: int array (threads, registers)."""
    lane = np.arange(WARP * warps)[:, None] % WARP
    reg = np.arange(t.registers)[None, :]
    return (reg // 2) * 8 + 2 * (lane % 4) + (reg % 2)


def row_register(t: Fragment, reg: int) -> int:
    """Index in the fragment's row vector of register ``reg``."""
    per_row = t.shape[1] // 8
    return (reg // 4) // per_row * 2 + ((reg % 4) >> 1)


def col_register(t: Fragment, reg: int) -> int:
    """Index in the fragment's column vector of register ``reg``."""
    per_row = t.shape[1] // 8
    return (reg // 4) % per_row * 2 + (reg % 2)
