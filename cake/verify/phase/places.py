"""Which cells of which block an access of a unit touches, for each of the unit's actors."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import numpy as np

from cake.ir.program import Pool, Program, Smem, WorkspaceDecl
from cake.ops.layout import smem_layout
from cake.verify.phase.events import Key, Region
from cake.verify.phase.regions import (
    box_cells,
    clipped,
    in_pool,
    linear,
    listed_cells,
    points_box,
)
from cake.verify.phase.scalars import UNKNOWN, Compiler, UnitState, Value
from cake.verify.phase.targets import WARPS, Target
from cake.verify.phase.unit import Beyond, Part


class Places:
    """The places of a program's accesses at given ``sizes`` of its tensors."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = smem_layout(program)
        self.sizes: Mapping[str, tuple[int | None, ...]] = {}
        self._found: dict[tuple[int, int, int, tuple[Value, ...]], int] = {}

    def locate(
        self, target: Target, space: str, unit: UnitState, part: Part
    ) -> tuple[Key, Region] | None:
        """The block and the region that a part of a unit accesses; None if nothing."""
        active = _active(target, unit, part)
        if active is False:
            return None
        offsets = [part.of(o(unit)) for o in target.offsets]
        unknown = active is UNKNOWN or any(o is UNKNOWN for o in offsets)
        if isinstance(active, np.ndarray):
            offsets = [o[active] if isinstance(o, np.ndarray) else o for o in offsets]
        if space == "global":
            region = self._box(target, offsets, unit, part)
            if region is None:
                return None
            return ("global", -1, target.name, 0), Region(
                region.cells, region.exact and not unknown
            )
        rank = unit.rank
        if target.peer is not None:
            peer = target.peer(unit)
            if not isinstance(peer, int):
                raise Beyond(f"which CTA of the cluster an access to {target.name} reaches")
            rank = peer
        stage = 0 if target.stage is None else target.stage(unit)
        if not isinstance(stage, int | np.integer):
            raise Beyond(f"which stage of {target.name} is accessed")
        cells = self._remembered(target, offsets, unit, part)
        return self._block(space, rank, target, int(stage), cells, not unknown)

    def _block(
        self, space: str, rank: int, target: Target, stage: int, cells: int, exact: bool
    ) -> tuple[Key, Region] | None:
        if not cells:
            return None
        buffer = self.program.resource(target.name)
        if isinstance(buffer, Smem) and buffer.pool is not None:
            pool = self.program.resource(buffer.pool)
            assert isinstance(pool, Pool)
            start = self.layout.pools[pool.name]
            placed = self.layout.buffers[buffer.name]
            cells = in_pool(buffer, placed, stage, start, pool.bytes, cells)
            row = buffer.shape[-1] * buffer.dtype.bytes if buffer.swizzle else 0
            return (space, rank, pool.name, 0), Region(cells, exact, (buffer.swizzle, row))
        return (space, rank, target.name, stage), Region(cells, exact)

    def _remembered(self, t: Target, offsets: list[Value], unit: UnitState, part: Part) -> int:
        """The cells of an access; the same numbers come round in every step of a ring."""
        plain = tuple(o.tobytes() if isinstance(o, np.ndarray) else o for o in offsets)
        key = (id(t), part.low, part.high, plain)
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = self._cells(t, offsets, unit, part)
        return found

    def _cells(self, t: Target, offsets: list[Value], unit: UnitState, part: Part) -> int:
        known = [0 if o is UNKNOWN else o for o in offsets]
        extents = tuple(
            size if o is UNKNOWN else extent
            for o, size, extent in zip(offsets, t.shape, t.extents, strict=True)
        )
        if not any(isinstance(o, np.ndarray) for o in known):
            starts = tuple(map(int, known))
            if t.chunk is not None and unit.threads > part.high - part.low:
                return _dealt(t.shape, starts, extents, t.chunk, unit.threads, part)
            starts, extents = _share(starts, extents, t.split, unit.threads, part)
            return box_cells(t.shape, starts, extents)
        threads = np.broadcast_arrays(*known)
        inside = np.indices(extents).reshape(len(extents), -1)
        each = [o[:, None] + i[None, :] for o, i in zip(threads, inside, strict=True)]
        return listed_cells(prod(t.shape), linear(t.shape, each).reshape(-1))

    def _box(self, t: Target, offsets: list[Value], unit: UnitState, part: Part) -> Region | None:
        sizes = self.sizes[t.name]
        known = [0 if o is UNKNOWN else o for o in offsets]
        extents: tuple[int, ...] = tuple(
            (2**31 if size is None else size) if o is UNKNOWN else extent
            for o, size, extent in zip(offsets, sizes, t.extents, strict=True)
        )
        if any(isinstance(o, np.ndarray) for o in known):
            region = points_box(known, extents)
        else:
            starts = tuple(map(int, known))
            starts, extents = _share(starts, extents, t.split, unit.threads, part)
            region = Region(tuple((s, s + e) for s, e in zip(starts, extents, strict=True)))
        return clipped(region, sizes)


def _active(target: Target, unit: UnitState, part: Part) -> Value:
    """Which threads of a part access: True (all), False (none), an array, or UNKNOWN."""
    active: Value = True
    for mask in (unit.mask, None if target.mask is None else target.mask(unit)):
        if mask is None:
            continue
        share = part.of(mask)
        if isinstance(share, np.ndarray):
            if not share.any():
                return False
            share = True if share.all() else share
        if share is False:
            return False
        if active is UNKNOWN or share is True:
            continue
        active = share if active is True or share is UNKNOWN else active & share
    return bool(active.any()) and active if isinstance(active, np.ndarray) else active


def _share(
    starts: tuple[int, ...], extents: tuple[int, ...], split: int | None, threads: int, part: Part
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The rows of a tile that belong to the warps of a part."""
    if split is None or part.high - part.low == threads:
        return starts, extents
    rows = extents[split] // WARPS
    first, last = part.low * WARPS // threads, part.high * WARPS // threads
    moved, kept = list(starts), list(extents)
    moved[split] += first * rows
    kept[split] = (last - first) * rows
    return tuple(moved), tuple(kept)


def _dealt(
    shape: tuple[int, ...],
    starts: tuple[int, ...],
    extents: tuple[int, ...],
    chunk: int,
    threads: int,
    part: Part,
) -> int:
    """Cells that the threads of a part copy if chunks are dealt out one after another."""
    number = np.arange(prod(extents)) // chunk % threads
    mine = (number >= part.low) & (number < part.high)
    inside = np.indices(extents).reshape(len(extents), -1)[:, mine]
    each = [s + i for s, i in zip(starts, inside, strict=True)]
    return listed_cells(prod(shape), linear(shape, each))


def tensor_sizes(
    program: Program, values: Mapping[str, Any], compiler: Compiler, unit: UnitState
) -> dict[str, tuple[int | None, ...]]:
    """Extents of every tensor and workspace; None where they depend on data."""
    found: dict[str, tuple[int | None, ...]] = {}
    for t in program.tensors:
        found[t.name] = tuple(d if isinstance(d, int) else values.get(d) for d in t.shape)
    for w in program.find(WorkspaceDecl):
        sizes = (compiler.compile(e)(unit) for e in w.shape)
        found[w.name] = tuple(n if isinstance(n, int) else None for n in sizes)
    return found
