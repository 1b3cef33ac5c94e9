"""How fragments lie over lanes (PTX ISA: mma.m16n8k16 fragments; wgmma.m64nNk16 D fragment).

For an ``acc`` fragment of R rows and C columns over W warps, warp w owns rows [w*R/W, (w+1)*R/W).
Within a warp the tile is made of 16x8 atoms, row-major; register ((mi * C/8) + j) * 4 + q of lane
l holds row mi*16 + l//4 + 8*(q>>1), column j*8 + 2*(l%4) + (q&1). Two neighbouring atoms read as
16-bit pairs are an A operand of mma.m16n8k16 / wgmma, so A operands need no layout of their own.

A ``b`` fragment (K, N) is made of 16x8 atoms (k, n); register ((ki * N/8) + j) * 4 + q holds
k = ki*16 + 2*(l%4) + (q&1) + 8*(q>>1), n = j*8 + l//4.

``a_ldmatrix`` and ``b_ldmatrix`` fragments of 8- or 32-bit elements are made of rows of 16 bytes: w
elements, of which a lane holds the p that fill word l%4. With word u, element e of it and h = u&1,
register u*p + e holds

* A: row mi*16 + l//4 + 8*h, column j*w + (l%4)*p + e, where u>>1 = mi * C/w + j;
* B: k = ki*2*w + h*w + (l%4)*p + e, n = j*8 + l//4, where u>>1 = ki * N/8 + j.
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
    first = warp * (rows // t.warps)
    if t.layout in ("acc", "b"):
        part, width = 2, 8
    else:
        part, width = 32 // t.dtype.bits, 128 // t.dtype.bits
    word, e = reg // part, reg % part
    h, block = word % 2, word // 2
    per_row = cols // (width if t.layout in ("acc", "a_ldmatrix") else 8)
    outer, j = block // per_row, block % per_row
    along = lane % 4 * part + e
    if t.layout in ("acc", "a_ldmatrix"):
        r, c = first + outer * 16 + lane // 4 + 8 * h, j * width + along
    else:
        r, c = outer * 2 * width + h * width + along, j * 8 + lane // 4
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
