"""Hill climbing over the meta parameters of several variants, with restarts.

The order of proposals depends on the candidates, the seed and the results alone. A search that is
started again with the same three asks for the same evaluations, so that finished ones can be
answered from the store.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from cake.evolve.space import Point, Variant, neighbours

Rank = tuple[bool, float, int]
"""How good a result is, lower is better: demoted or not, seconds, steps from the defaults."""

Proposals = Generator[list[int], Mapping[int, Rank | None], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A candidate that survived the screening."""

    id: int
    point: Point
    estimate: float
    distance: int = 0

    @property
    def order(self) -> tuple[float, int, int]:
        """The more promising first."""
        return self.estimate, self.distance, self.id


class HillClimb:
    """Proposes candidates in batches of at most ``width``, to be evaluated together.

    Each variant is climbed first from its best estimate, the most promising variant first; then
    from random candidates, until all are evaluated. A step goes to the first batch of neighbours
    that holds something better.
    """

    def __init__(
        self, entries: Sequence[Entry], variants: Sequence[Variant], *, seed: int, width: int
    ) -> None:
        self._entries = {e.id: e for e in entries}
        self._by_key = {e.point.key: e for e in entries}
        self._domains = {v.name: v.domains for v in variants}
        self._random = Random(seed)
        self._width = width
        self._ranks: dict[int, Rank | None] = {}

    def proposals(self) -> Proposals:
        """Yields ids of candidates and is sent their ranks, None for a failure."""
        for start in self._starts():
            yield from self._climb(start)

    def _starts(self) -> Generator[Entry, None, None]:
        best: dict[str, Entry] = {}
        for e in sorted(self._entries.values(), key=lambda e: e.order):
            best.setdefault(e.point.variant, e)
        yield from best.values()
        rest = sorted(self._entries)
        self._random.shuffle(rest)
        for number in rest:
            if number not in self._ranks:
                yield self._entries[number]

    def _climb(self, current: Entry) -> Proposals:
        yield from self._evaluate([current])
        improved = True
        while improved:
            improved = False
            around = self._around(current)
            for at in range(0, len(around), self._width):
                batch = around[at : at + self._width]
                yield from self._evaluate(batch)
                best = min(batch, key=self._rank)
                if self._rank(best) < self._rank(current):
                    current, improved = best, True
                    break

    def _around(self, entry: Entry) -> list[Entry]:
        """Unevaluated neighbours, the best estimate first."""
        points = neighbours(entry.point, self._domains[entry.point.variant])
        found = (self._by_key.get(p.key) for p in points)
        new = [e for e in found if e is not None and e.id not in self._ranks]
        return sorted(new, key=lambda e: e.order)

    def _evaluate(self, entries: Sequence[Entry]) -> Proposals:
        new = [e.id for e in entries if e.id not in self._ranks]
        if new:
            self._ranks.update((yield new))

    def _rank(self, entry: Entry) -> Rank:
        rank = self._ranks.get(entry.id)
        return (True, float("inf"), 0) if rank is None else rank
