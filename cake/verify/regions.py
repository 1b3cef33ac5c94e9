"""Which part of a shared-memory buffer an access touches, and whether two parts overlap."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from cake.ir.nodes import VarRef, View
from cake.ir.program import Program, Role, Smem
from cake.ir.types import WARP, Slot, SmemView
from cake.verify.integers import THREAD, Integers, unit_key
from cake.verify.offsets import Offset, distance, meet, nearest
from cake.verify.poly import ZERO, Poly
from cake.verify.stage_blocks import StageBlocks

SlotId = tuple[str, int, int]
"""A slot of a ring: ring, place in the program that took it, how many times ago."""

Overlap = Literal["no", "maybe", "yes"]


Stage = Offset | frozenset[SlotId] | None
"""Slots of a ring, or a number modulo the buffer's stages; None: not staged."""


@dataclass(frozen=True, slots=True)
class Region:
    """A part of a buffer: ``extents[i]`` elements at ``offsets[i]`` along axis i.

    Where stages are dealt out in blocks, the block is the first axis, and ``stages`` its size.
    """

    buffer: str
    stages: int
    stage: Stage
    offsets: tuple[Offset, ...]
    extents: tuple[int, ...]
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        key = (self.buffer, self.stage, self.offsets, self.extents)
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        # Sets of accesses ask for it after every statement.
        return self._hash

    def with_offsets(self, change: Callable[[Offset], Offset]) -> Region:
        """The region with its offsets changed, the stage aside."""
        offsets = tuple(map(change, self.offsets))
        if all(map(operator.is_, offsets, self.offsets)):
            return self
        return Region(self.buffer, self.stages, self.stage, offsets, self.extents)

    def at_stage(self, stage: Stage) -> Region:
        """The region in another stage."""
        if stage == self.stage:
            return self
        return Region(self.buffer, self.stages, stage, self.offsets, self.extents)

    def staged(self, change: Callable[[Poly], Poly]) -> Region:
        """The region with a computed stage changed."""
        if not isinstance(self.stage, Offset):
            return self
        n = self.stages
        return self.at_stage(self.stage.mapped(lambda p: change(p).modulo(n)))


_WITHIN, _UNITS, _THREADS = range(3)


class Regions:
    """Regions of one role."""

    def __init__(
        self, program: Program, integers: Integers, role: Role, blocks: StageBlocks
    ) -> None:
        self.program = program
        self.blocks = blocks
        self.integers = integers
        self.unit = unit_key(role.name)
        self.units = role.units
        self.threads = role.unit_threads
        index = np.arange(self.threads)
        self._threads = {
            f"{THREAD}lane{WARP}": index % WARP,
            f"{THREAD}warp{self.threads // WARP}": index // WARP,
            f"{THREAD}thread{self.threads}": index,
        }
        self._found: dict[tuple[Region, Region, int], Overlap] = {}
        self._values: dict[tuple[Poly, int], Any] = {}
        self._spans: dict[tuple[Poly, int], tuple[tuple[float, float, bool], ...]] = {}

    def of(self, view: View, slots: Mapping[str, frozenset[SlotId]]) -> Region:
        """The part of its buffer that a view names; ``slots`` are those that variables hold."""
        buffer = self.program.resource(view.base)
        assert isinstance(buffer, Smem)
        assert isinstance(view.type, SmemView)
        extents = (1,) * (len(buffer.shape) - len(view.type.shape)) + view.type.shape
        offsets = tuple(
            Offset(ZERO) if extent == whole else self._offset(self.integers.poly(e))
            for e, extent, whole in zip(view.offsets, extents, buffer.shape, strict=True)
        )
        stage: Stage = None
        number = None if view.stage is None else self.integers.poly(view.stage)
        if view.stage is not None and isinstance(view.stage.type, Slot):
            name = view.stage.name if isinstance(view.stage, VarRef) else ""
            stage = slots.get(name) or Offset(None)
        elif number is not None:
            block, place = self.blocks.split(view.base, number)
            stage = self._offset(place)
            if block is not None:
                offsets, extents = (self._offset(block), *offsets), (1, *extents)
        elif view.stage is not None:
            stage = Offset(None)
        return Region(buffer.name, self.blocks.size(view.base), stage, offsets, extents)

    def _offset(self, p: Poly | None) -> Offset:
        if p is None:
            return Offset(None)
        part = Poly(tuple(t for t in p.terms if t[0] and all(THREAD in a for a in t[0])))
        base = p - part
        mixed = any(THREAD in a for a in base.atoms)
        return Offset(None) if mixed else Offset(base, part)

    def whole(self, a: Region) -> bool:
        """Whether a region is all of a buffer that has no stages."""
        buffer = self.program.resource(a.buffer)
        assert isinstance(buffer, Smem)
        return a.stage is None and a.extents == buffer.shape

    def overlap(self, a: Region, b: Region, *, between_units: bool) -> Overlap:
        """Whether an earlier region meets a later one of the same buffer, within a unit or between
        different units."""
        return self._cached(a, b, _UNITS if between_units else _WITHIN)

    def between_threads(self, a: Region, b: Region) -> Overlap:
        """Whether two accesses by each thread for itself meet in different threads of a unit."""
        return self._cached(a, b, _THREADS)

    def _cached(self, a: Region, b: Region, how: int) -> Overlap:
        key = (a, b, how)
        if key not in self._found:
            self._found[key] = self._overlap(a, b, how)
        return self._found[key]

    def _overlap(self, a: Region, b: Region, how: int) -> Overlap:
        stages = self._stage_distance(a, b)
        if stages == "no":
            return "no"
        gaps = [distance(x, y) for x, y in zip(a.offsets, b.offsets, strict=True)]
        worst: Overlap = "no"
        for i, j in np.argwhere(self._meeting(a, b, gaps) & self._compared(how)).tolist():
            found = self._apart(a, b, i, j, stages, gaps, how)
            if found == "yes":
                return "yes"
            worst = "maybe" if found == "maybe" else worst
        return worst

    def _compared(self, how: int) -> Any:
        """The pairs of units that are compared: bool array (units, units)."""
        same = np.eye(self.units, dtype=bool)
        return ~same if how == _UNITS else same

    def _meeting(self, a: Region, b: Region, gaps: list[int | None]) -> Any:
        """The pairs of units whose parts meet along every axis: bool array (units, units)."""
        meeting = np.ones((self.units, self.units), dtype=bool)
        for x, y, n, m, d in zip(a.offsets, b.offsets, a.extents, b.extents, gaps, strict=True):
            if d is not None:
                low, high = self._ends(x.part, n)[..., None] + d
                first, last = self._ends(y.part, m)[:, None]
                meeting &= meet(low, high, first, last, x)
        return meeting

    def _ends(self, part: Poly, extent: int) -> Any:
        """First element and end in each unit: array (2, units)."""
        return np.array([(low, high) for low, high, _ in self._span(part, extent)]).T

    def _stage_distance(self, a: Region, b: Region) -> int | Overlap:
        """How two stages are apart, the units' own parts aside; or whether they are the same."""
        if isinstance(a.stage, frozenset) and isinstance(b.stage, frozenset):
            # The ring's protocol orders different slots, even where they are one stage.
            return "yes" if a.stage & b.stage else "no"
        if not isinstance(a.stage, Offset) or not isinstance(b.stage, Offset):
            return "yes" if a.stage is None and b.stage is None else "maybe"
        if a.stage.base is None or b.stage.base is None:
            return "maybe"
        d = (a.stage.base - b.stage.base).modulo(a.stages).constant
        if d is None:
            return "maybe"
        plain = not a.stage.part.terms and not b.stage.part.terms
        return ("no" if d else "yes") if plain else d

    def _apart(
        self,
        a: Region,
        b: Region,
        i: int,
        j: int,
        stages: int | Overlap,
        gaps: list[int | None],
        how: int,
    ) -> Overlap:
        """Overlap of ``a`` in unit i with ``b`` in unit j."""
        result: Overlap = (
            self._same_stage(a, b, i, j, stages) if isinstance(stages, int) else stages
        )
        dense = how != _THREADS
        for x, y, n, m, d in zip(a.offsets, b.offsets, a.extents, b.extents, gaps, strict=True):
            if d is None:
                result = "maybe" if result == "yes" else result
                continue
            exact, sharp = self._span(x.part, n)[i][2], self._span(y.part, m)[j][2]
            dense = dense and exact and sharp
        if sum(o.stride != 0 for o in a.offsets) > 1 and result == "yes":
            result = "maybe"
        if result == "no" or dense:
            return result
        found = self._enumerated(a, b, i, j, gaps)
        return "maybe" if found == "yes" and result == "maybe" else found

    def _same_stage(self, a: Region, b: Region, i: int, j: int, distance: int) -> Overlap:
        assert isinstance(a.stage, Offset)
        assert isinstance(b.stage, Offset)
        low, high, _ = self._span(a.stage.part, 1)[i]
        first, last, _ = self._span(b.stage.part, 1)[j]
        if high - low > 1 or last - first > 1:
            return "maybe"
        return "no" if (distance + low - first) % a.stages else "yes"

    def _enumerated(self, a: Region, b: Region, i: int, j: int, gaps: list[int | None]) -> Overlap:
        """Overlap of the elements of different threads, thread by thread, along the axes whose
        distance is known."""
        same = np.ones((self.threads, self.threads), dtype=bool)
        for x, y, n, m, d in zip(a.offsets, b.offsets, a.extents, b.extents, gaps, strict=True):
            if d is None:
                continue
            p, q = self._places(x.part, i), self._places(y.part, j)
            if p is None or q is None:
                return "maybe"
            gap = nearest(p[:, None] + d - q[None, :], n, m, x)
            same &= (gap < m) & (gap > -n)
        if i == j:
            np.fill_diagonal(same, False)
        return "yes" if same.any() else "no"

    def _places(self, part: Poly, unit: int) -> Any:
        """Value of ``part`` in every thread of a unit, None if it has other atoms."""
        key = (part, unit)
        if key not in self._values:
            found = self.integers.atoms.evaluate(part, {**self._threads, self.unit: unit})
            self._values[key] = None if found is None else np.broadcast_to(found, self.threads)
        return self._values[key]

    def _span(self, part: Poly, extent: int) -> tuple[tuple[float, float, bool], ...]:
        """For each unit: first element, end, and whether all elements between are touched."""
        key = (part, extent)
        if key not in self._spans:
            threads = [t for t in part.terms if t[0] != (self.unit,)]
            dense = len(threads) < 2 and all(
                len(m) == 1 and "/" not in m[0] and abs(c) <= extent for m, c in threads
            )
            uniform = all(self.unit in a and "%lane" not in a for m, _ in threads for a in m)
            found = []
            for i in range(self.units):
                low, high = self.integers.interval(part, {self.unit: i})
                exact = low == high or dense or uniform
                found.append((low, high + extent, exact and not math.isinf(high - low)))
            self._spans[key] = tuple(found)
        return self._spans[key]
