"""Indices that are carried round a loop, kept relative to the loop's rounds.

Before the first round the number of the round is 0, so an index c is ``c + a * round`` for any a,
here the pace at which the loop moves through the stages; at the end of a round every ``round``
becomes ``round - 1``. A copy into stage ``(k + 2) % 3`` is thereby seen, two rounds later, to be
the copy into stage ``k % 3``.
"""

from __future__ import annotations

from dataclasses import replace

from cake.ir.nodes import View, walk_exprs, walk_stmts
from cake.ir.types import Slot
from cake.verify.flow import Loop
from cake.verify.integers import FRESH, Integers
from cake.verify.memory_items import Item
from cake.verify.offsets import Offset
from cake.verify.poly import ZERO, Poly
from cake.verify.sites import Site
from cake.verify.stage_blocks import StageBlocks


class LoopFrames:
    """Rewrites items where control enters, repeats or leaves the loops of a role."""

    def __init__(self, sites: tuple[Site, ...], integers: Integers, blocks: StageBlocks) -> None:
        self.integers = integers
        self._anchored = _anchors(sites, integers, blocks)
        self._local: dict[int, frozenset[str]] = {}

    def enter(self, s: Loop, items: set[Item]) -> set[Item]:
        """Express stages relative to a loop's rounds, for buffers that the loop so indexes."""
        pace = self._anchored.get(id(s))
        if pace is None:
            return items
        turn = self.integers.loops[id(s)][0]

        def anchored(x: Item) -> Item:
            ahead = turn * pace.get(x.region.buffer, 0)
            return replace(x, region=x.region.staged(lambda p: p + ahead)) if ahead.terms else x

        return {anchored(x) for x in items}

    def repeat(self, s: Loop, items: set[Item]) -> set[Item]:
        """From the end of one round to the start of the next.

        Stages are followed round by round, as they repeat; other offsets become "this one or any
        before", so that the state settles.
        """
        found = self.integers.loops.get(id(s))
        key = None if found is None else str(found[0])
        kept = {self._forgotten(x, s, key) for x in items}
        if found is None:
            return kept
        turn, rounds = found
        before = {str(turn): turn - 1}

        def moved(x: Item) -> Item:
            region = x.region.with_offsets(lambda o: o.earlier(turn, rounds.constant))
            region = region.staged(lambda p: p.replace(before))
            # A thread's own place in this round may have been another's in an earlier one.
            return x if region is x.region else replace(x, region=region, own=None)

        return {moved(x) for x in kept}

    def leave(self, s: Loop, items: set[Item]) -> set[Item]:
        """Behind the loop its rounds have run out."""
        found = self.integers.loops.get(id(s))
        if found is None:
            return items
        key = str(found[0])
        after = {key: self.integers.extreme("max", ZERO, found[1])}

        def last(o: Offset) -> Offset:
            if o.base is None or key not in o.base.atoms:
                return o
            return Offset(None) if o.stride else o.mapped(lambda p: p.replace(after))

        def left(x: Item) -> Item:
            region = x.region.with_offsets(last).staged(lambda p: p.replace(after))
            return x if region is x.region else replace(x, region=region, own=None)

        return {left(x) for x in items}

    def _forgotten(self, x: Item, s: Loop, keep: str | None) -> Item:
        """Drop polynomials that have other values in the next round."""
        local = self._locals(s)

        def stable(p: Poly) -> bool:
            return all(
                a == keep or (FRESH not in a and not self.integers.mentions(a, local))
                for a in p.atoms
            )

        def kept(o: Offset) -> Offset:
            known = o.base is not None and stable(o.base) and stable(o.part)
            return o if known else Offset(None)

        region = x.region.with_offsets(kept)
        if isinstance(region.stage, Offset):
            region = region.at_stage(kept(region.stage))
        return x if region is x.region else replace(x, region=region)

    def _locals(self, s: Loop) -> frozenset[str]:
        """Atoms of the variables of a loop and of the loops in it."""
        if id(s) not in self._local:
            atoms: set[str] = set()
            for inner in walk_stmts((s,)):
                if id(inner) in self.integers.loops:
                    atoms |= self.integers.loops[id(inner)][0].atoms
                for value in self.integers.variables.get(id(inner), ()):
                    atoms |= value.atoms if id(inner) not in self.integers.loops else set()
            self._local[id(s)] = frozenset(atoms)
        return self._local[id(s)]


def _anchors(
    sites: tuple[Site, ...], integers: Integers, blocks: StageBlocks
) -> dict[int, dict[str, int]]:
    """For each loop, by how much a round moves the stages of the buffers that it indexes."""
    found: dict[int, dict[str, int]] = {}
    for site in sites:
        for view in walk_exprs(site.call):
            if not isinstance(view, View) or view.stage is None:
                continue
            stage = None if isinstance(view.stage.type, Slot) else integers.poly(view.stage)
            if stage is None:
                continue
            _, residue = blocks.split(view.base, stage)
            for loop in site.loops:
                if id(loop) in integers.loops:
                    parts = residue.split(str(integers.loops[id(loop)][0]))
                    pace = None if parts is None else parts[0].constant
                    if pace:
                        found.setdefault(id(loop), {}).setdefault(view.base, pace)
    return found
