"""Where shared memory holds things: swizzled addresses, and the placement of a program's buffers.

The swizzle of ``w`` bytes (32, 64 or 128) is that of TMA: a tile is cut into column blocks of ``w``
bytes, each block holds its columns of all rows, row after row, and bits 4.. of an address are XORed
with bits 7.. (one, two or three of them). The pattern repeats every ``8 * w`` bytes, so tiles start
on multiples of that. (PTX ISA, "Tensors: Swizzling Modes".)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from cake.ir.dtypes import DType
from cake.ir.nodes import View, walk_calls
from cake.ir.program import Barrier, Pipeline, Pool, Program, Smem
from cake.ops.base import Access, lookup

MBARRIER_BYTES = 8
BULK_ALIGNMENT = 128
"""TMA destinations (PTX ISA, cp.async.bulk.tensor)."""
PLAIN_ALIGNMENT = 16
"""The widest access of a thread."""


def swizzle_period(swizzle: int) -> int:
    """Bytes after which the XOR pattern repeats (1 without a swizzle)."""
    return 8 * swizzle if swizzle else 1


def swizzled(offset: Any, swizzle: int) -> Any:
    """Byte offset of linear byte ``offset`` in a tile that starts on a period; ints or arrays."""
    return offset ^ ((offset >> 3) & (swizzle - 16)) if swizzle else offset


@lru_cache(maxsize=256)
def tile_offsets(shape: tuple[int, ...], swizzle: int, dtype: DType) -> Any:
    """Byte offset in its tile of every element: read-only int array of ``shape``.

    Leading axes are flattened into rows. The last axis must fill whole column blocks where it is
    wider than one (ValueError).
    """
    if not swizzle:
        offsets = np.arange(prod(shape)).reshape(shape) * dtype.bytes
    else:
        row_bytes = shape[-1] * dtype.bytes
        if row_bytes > swizzle and row_bytes % swizzle:
            raise ValueError(f"rows of {row_bytes} bytes do not fill blocks of {swizzle} bytes")
        rows = prod(shape[:-1])
        row = np.arange(rows)[:, None]
        column = np.arange(shape[-1])[None, :] * dtype.bytes
        block, within = column // swizzle, column % swizzle
        linear = block * (rows * swizzle) + row * swizzle + within
        offsets = swizzled(linear, swizzle).reshape(shape)
    offsets.flags.writeable = False
    return offsets


@dataclass(frozen=True, slots=True, kw_only=True)
class Placement:
    """Where a buffer lies: stage s starts at byte ``offset + s * stage_bytes`` of the CTA's block.

    ``bytes`` covers all stages.
    """

    offset: int
    stage_bytes: int
    bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SmemLayout:
    """The CTA's block of shared memory; all figures in bytes from its start.

    ``full`` and ``empty`` are the first mbarriers of each ring, ``barriers`` those of raw
    barriers; the following slots are 8 bytes apart. ``bytes`` is the size of the block, whose
    start is aligned to ``alignment``.
    """

    buffers: Mapping[str, Placement]
    pools: Mapping[str, int]
    full: Mapping[str, int]
    empty: Mapping[str, int]
    barriers: Mapping[str, int]
    bytes: int
    alignment: int


def _aligned(offset: int, alignment: int) -> int:
    return -(-offset // alignment) * alignment


def _async_buffers(program: Program) -> Iterator[str]:
    """Buffers that TMA, bulk copies, wgmma or tcgen05 touch."""
    for role in program.roles:
        for call in walk_calls(role.body):
            primitive = lookup(call.op)
            for effect in () if primitive is None else primitive.effects(call):
                if isinstance(effect, Access) and effect.proxy == "async":
                    view = call.args[effect.operand]
                    if isinstance(view, View):
                        yield view.base


def _alignment(buffer: Smem, asynchronous: frozenset[str]) -> int:
    least = BULK_ALIGNMENT if buffer.name in asynchronous else PLAIN_ALIGNMENT
    return max(least, swizzle_period(buffer.swizzle))


@lru_cache(maxsize=256)
def smem_layout(program: Program) -> SmemLayout:
    """Place every buffer, pool and mbarrier of a program.

    The largest alignment goes first, which leaves no gaps between buffers of power-of-two size;
    mbarriers come last. Stages of a buffer are equally aligned.
    """
    asynchronous = frozenset(_async_buffers(program))
    buffers: tuple[Smem, ...] = program.find(Smem)
    alignments = {b.name: _alignment(b, asynchronous) for b in buffers}
    sizes = {b.name: _aligned(b.tile_bytes, alignments[b.name]) for b in buffers}
    blocks: list[tuple[int, int, str]] = []
    for pool in program.find(Pool):
        inside = [alignments[b.name] for b in buffers if b.pool == pool.name]
        blocks.append((max([BULK_ALIGNMENT, *inside]), pool.bytes, pool.name))
    for b in buffers:
        if b.pool is None:
            blocks.append((alignments[b.name], sizes[b.name] * (b.stages or 1), b.name))
    starts: dict[str, int] = {}
    end = 0
    for alignment, size, name in sorted(blocks, key=lambda block: -block[0]):
        starts[name] = _aligned(end, alignment)
        end = starts[name] + size
    placed = {
        b.name: Placement(
            offset=starts[b.name] if b.pool is None else starts[b.pool] + (b.offset or 0),
            stage_bytes=sizes[b.name],
            bytes=sizes[b.name] * (b.stages or 1),
        )
        for b in buffers
    }
    end = _aligned(end, MBARRIER_BYTES)
    full: dict[str, int] = {}
    empty: dict[str, int] = {}
    raw: dict[str, int] = {}
    for ring in program.find(Pipeline):
        full[ring.name] = end
        empty[ring.name] = end + ring.stages * MBARRIER_BYTES
        end += 2 * ring.stages * MBARRIER_BYTES
    for barrier in program.find(Barrier):
        raw[barrier.name] = end
        end += barrier.slots * MBARRIER_BYTES
    return SmemLayout(
        buffers=placed,
        pools={p.name: starts[p.name] for p in program.find(Pool)},
        full=full,
        empty=empty,
        barriers=raw,
        bytes=end,
        alignment=max((a for a, _, _ in blocks), default=PLAIN_ALIGNMENT),
    )
