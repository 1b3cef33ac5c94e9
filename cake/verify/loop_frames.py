"""Indices that are carried round a loop, kept relative to the loop's variable.

Before the first round the variable equals its start, so an index c is ``c - start + v``; at the end
of a round every v becomes ``v - step``. A copy into stage ``(k + 2) % 3`` is thereby seen, two
rounds later, to be the copy into stage ``k % 3``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from cake.ir.nodes import For, TileLoop, View, walk_exprs, walk_stmts
from cake.ir.types import Slot
from cake.verify.flow import Loop
from cake.verify.integers import FRESH, Integers
from cake.verify.memory_items import Item
from cake.verify.poly import ZERO, Poly
from cake.verify.regions import Offset
from cake.verify.sites import Site


class LoopFrames:
    """Rewrites items where control enters, repeats or leaves the loops of a role."""

    def __init__(self, sites: tuple[Site, ...], integers: Integers) -> None:
        self.integers = integers
        self._anchored = _anchors(sites, integers)
        self._local: dict[int, frozenset[str]] = {}

    def enter(self, s: Loop, items: set[Item]) -> set[Item]:
        """Express stages relative to a loop's variable, for buffers that the loop so indexes."""
        buffers = self._anchored.get(id(s))
        found = self._range(s)
        if found is None or not buffers:
            return items
        var, start, _ = found

        def anchored(p: Poly) -> Poly:
            return p - start + var

        return {
            replace(x, region=x.region.staged(anchored)) if x.region.buffer in buffers else x
            for x in items
        }

    def repeat(self, s: Loop, items: set[Item]) -> set[Item]:
        """From the end of one round to the start of the next."""
        found = self._range(s)
        key = None if found is None else str(found[0])
        kept = {self._forgotten(x, s, key) for x in items}
        if found is None or key is None:
            return kept
        var, _, step = found
        earlier = {key: var - step}
        return {_mapped(x, lambda p: p.replace(earlier)) for x in kept}

    def leave(self, s: Loop, items: set[Item]) -> set[Item]:
        """Behind the loop its variable has run out."""
        found = self._range(s)
        if found is None or not isinstance(s, For):
            return items
        var, start, step = found
        bounds = self.integers.range_of(s)
        assert bounds is not None
        rounds = self.integers.floordiv(bounds[1] - start + (step - 1), step)
        last = start + self.integers.extreme("max", ZERO, rounds) * step
        after = {str(var): last}
        return {_mapped(x, lambda p: p.replace(after)) for x in items}

    def _range(self, s: Loop) -> tuple[Poly, Poly, int] | None:
        """Variable, start and step of a loop whose range is an expression."""
        found = self.integers.range_of(s) if isinstance(s, For) else None
        if found is None or not isinstance(s, For):
            return None
        return self.integers.values[s.var], found[0], found[2]

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

        region = replace(x.region, offsets=tuple(map(kept, x.region.offsets)))
        if isinstance(region.stage, Offset):
            region = replace(region, stage=kept(region.stage))
        return replace(x, region=region)

    def _locals(self, s: Loop) -> frozenset[str]:
        """Atoms of the variables of a loop and of the loops in it."""
        if id(s) not in self._local:
            inner = [x for x in walk_stmts((s,)) if isinstance(x, For | TileLoop)]
            names = [n for x in inner for n in ((x.var,) if isinstance(x, For) else x.vars)]
            atoms = (self.integers.values[n].atoms for n in names)
            self._local[id(s)] = frozenset[str]().union(*atoms)
        return self._local[id(s)]


def _anchors(sites: tuple[Site, ...], integers: Integers) -> dict[int, set[str]]:
    """For each loop, the buffers whose stage its variable takes part in."""
    found: dict[int, set[str]] = {}
    for site in sites:
        for view in walk_exprs(site.call):
            if not isinstance(view, View) or view.stage is None:
                continue
            stage = None if isinstance(view.stage.type, Slot) else integers.poly(view.stage)
            if stage is None:
                continue
            used = integers.residue(stage, integers.stages(view.base)).atoms
            for loop in site.loops:
                if isinstance(loop, For) and not integers.values[loop.var].atoms.isdisjoint(used):
                    found.setdefault(id(loop), set()).add(view.base)
    return found


def _mapped(x: Item, change: Callable[[Poly], Poly]) -> Item:
    return replace(x, region=x.region.mapped(change))
