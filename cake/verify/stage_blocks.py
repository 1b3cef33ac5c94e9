"""Stages that are dealt out in blocks, as in ``E[u * 2 + k % 2]``: two for each unit.

Modulo the number of all stages such an index says nothing about earlier rounds. So the block and
the place in it are followed each for itself: the block like any other index, the place modulo the
block's size.
"""

from __future__ import annotations

from collections.abc import Iterable

from cake.ir.nodes import View, walk_exprs
from cake.ir.types import Slot
from cake.verify.integers import Integers
from cake.verify.poly import Poly
from cake.verify.sites import Site


class StageBlocks:
    """The blocks of each buffer that a role's calls index by hand."""

    def __init__(self, integers: Integers, sites: Iterable[Site]) -> None:
        self._integers = integers
        found: dict[str, list[Poly | None]] = {}
        for view in {id(v): v for site in sites for v in walk_exprs(site.call)}.values():
            if isinstance(view, View) and view.stage is not None:
                by_ring = isinstance(view.stage.type, Slot)
                stage = None if by_ring else integers.poly(view.stage)
                found.setdefault(view.base, []).append(stage)
        self._sizes = {name: self._common(name, stages) for name, stages in found.items()}

    def size(self, buffer: str) -> int:
        """Stages of a block; all of the buffer's, if they are not dealt out in blocks."""
        return self._sizes.get(buffer) or self._integers.stages(buffer)

    def split(self, buffer: str, stage: Poly) -> tuple[Poly | None, Poly]:
        """First stage of the block, None without blocks; and the place in it, modulo its size."""
        size = self._sizes.get(buffer)
        if size is None:
            return None, self._integers.residue(stage, self._integers.stages(buffer))
        place = self._place(stage, size)
        assert place is not None
        return stage - place, self._integers.residue(place, size)

    def _common(self, buffer: str, stages: list[Poly | None]) -> int | None:
        """The size of blocks in which all indices of a buffer can be split."""
        total = self._integers.stages(buffer)
        for size in sorted({n for p in stages if p is not None for n in self._moduli(p)}):
            fits = 1 < size < total and total % size == 0
            if fits and all(p is not None and self._place(p, size) is not None for p in stages):
                return size
        return None

    def _moduli(self, p: Poly) -> Iterable[int]:
        """By what the remainders in an index are taken."""
        for key in p.atoms:
            division = self._integers.atoms.get(key).division
            if division is not None and division[2]:
                yield division[1]

    def _place(self, p: Poly, size: int) -> Poly | None:
        """The part of an index that is no multiple of a block's size: a remainder or a number."""
        rest = Poly(tuple(t for t in p.terms if t[1] % size))
        number = rest.constant
        if number is not None:
            return Poly.number(number % size)
        moduli = tuple(self._moduli(rest))
        alone = len(rest.terms) == 1 and rest.terms[0][1] == 1 and len(rest.terms[0][0]) == 1
        return rest if alone and moduli and size == moduli[0] else None
