"""Which runs decide about a program: sizes, tiles of a cluster's CTAs, and choices of data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, islice, product
from math import prod
from random import Random

from cake.ir.nodes import Stmt
from cake.ir.program import Grid, Pipeline, Tiles
from cake.ops.raster import tile_at, walk_length, walk_of
from cake.verify.phase.expand import Expander
from cake.verify.phase.measure import NoData
from cake.verify.phase.scalars import UnitState
from cake.verify.phase.sizes import FEW_TILES, Sizes
from cake.verify.phase.walk import Cta

MAX_ORDERS = 24
"""Orders of empty and other tiles that are tried at one combination of sizes."""
MAX_CHOICES = 24
"""Runs that explore the choices of one scenario."""
MAX_OPTIONS = 6
"""Values of one element of a tensor."""

MAX_GROUPS = 9
"""Tiles from the start of a walk that are looked at."""

Point = tuple[int, ...]
Group = tuple[Point | None, ...]
"""The tiles of a cluster's CTAs by rank; None for a CTA beyond the end."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """One cluster at given sizes: its CTAs with their tiles.

    ``kind`` is the same for scenarios that do the same in each tile; None if tiles differ.
    """

    sizes: dict[str, int]
    ctas: tuple[Cta, ...]
    kind: object = None

    @property
    def tiles(self) -> int:
        return max((len(c.tiles) for c in self.ctas), default=0)


@dataclass(slots=True)
class Chooser:
    """Decides what depends on data: by a script, then by the first option or by ``random``.

    An element of a tensor has one value in all roles. Its options are the trip counts worth trying
    times the constants that the program divides by, so that lengths and offsets show all of them.
    ``asked`` has the number of options of each choice made, ``read`` the elements that each role
    asked for.
    """

    options: Sequence[int]
    script: Sequence[int] = ()
    random: Random | None = None
    asked: list[int] = field(default_factory=list)
    made: dict[tuple[object, ...], int] = field(default_factory=dict)
    read: dict[str, set[tuple[str, tuple[int, ...]]]] = field(default_factory=dict)
    role: str = ""

    def begin(self, role: str) -> None:
        self.role = role

    def element(self, tensor: str, index: tuple[int, ...]) -> int:
        self.read.setdefault(self.role, set()).add((tensor, index))
        return self.options[self._choice((tensor, index), len(self.options))]

    def pick(self, place: Stmt, occurrence: int, options: int) -> int:
        return self._choice((id(place), occurrence), options)

    def _choice(self, key: tuple[object, ...], options: int) -> int:
        if key not in self.made:
            number = len(self.asked)
            self.asked.append(options)
            if number < len(self.script):
                self.made[key] = self.script[number]
            else:
                self.made[key] = 0 if self.random is None else self.random.randrange(options)
        return self.made[key]

    def disagreeing(self) -> tuple[str, str] | None:
        """Two roles each of which reads elements that the other does not."""
        for a, b in combinations(sorted(self.read), 2):
            if self.read[a] - self.read[b] and self.read[b] - self.read[a]:
                return a, b
        return None

    def following(self) -> list[int] | None:
        """The script of the next combination; None after the last one."""
        made = [*self.script[: len(self.asked)]]
        made += [0] * (len(self.asked) - len(made))
        while made:
            if made[-1] + 1 < self.asked[len(made) - 1]:
                made[-1] += 1
                return made
            made.pop()
        return None


def choosers(options: Sequence[int]) -> Iterator[Chooser]:
    """Choosers for the runs of one scenario, each to be used up before the next is asked for.

    All combinations if they are few, else some that are drawn at random from a fixed seed.
    """
    chooser = Chooser(options)
    yield chooser
    if prod(chooser.asked) > MAX_CHOICES:
        yield from (Chooser(options, random=Random(seed)) for seed in range(1, MAX_CHOICES))
        return
    for _ in range(MAX_CHOICES):
        script = chooser.following()
        if script is None:
            return
        chooser = Chooser(options, script)
        yield chooser


def implied(scenarios: Sequence[Scenario]) -> set[int]:
    """Numbers of scenarios in which nothing happens that others do not show.

    A CTA that walks fewer tiles of one kind begins as one does that walks more of them, and ends
    its last tile as that one ends its own.
    """
    longest: dict[object, int] = {}
    for number, s in enumerate(scenarios):
        if s.kind is not None and s.tiles <= FEW_TILES:
            best = longest.get(s.kind)
            if best is None or s.tiles > scenarios[best].tiles:
                longest[s.kind] = number
    return {
        number
        for number, s in enumerate(scenarios)
        if s.tiles <= FEW_TILES and longest.get(s.kind, number) != number
    }


class Scenarios:
    """The scenarios of one program, the smallest first."""

    def __init__(self, expander: Expander) -> None:
        self.expander = expander
        self.program = expander.program
        self.sizes = Sizes(expander)
        self.padded = any(r.clustered for r in self.program.find(Pipeline))

    def all(self) -> Iterator[Scenario]:
        """Every scenario."""
        for sizes, tiles in self.sizes.vectors():
            yield from self._at(sizes, tiles)

    def trips(self, scenario: Scenario) -> list[str]:
        """Rounds of the loops through phases in a scenario's first tile."""
        cta = scenario.ctas[0]
        state = UnitState(1, cta.rank, NoData(), dict(cta.values))
        found = self.sizes.profile(state, next(iter(cta.tiles), None)).trips
        lines = self.sizes.lines
        return [f"line {lines[loop]}: {n} rounds" for loop, n in found.items() if loop in lines]

    def data_options(self) -> tuple[int, ...]:
        """Values that elements of integer tensors take."""
        counts = sorted({n for d in self.sizes.desired.values() for n in d} or {0, 1, 2})
        unit = max(self.sizes.units, default=1)
        lengths = [
            1,
            0,
            unit,
            *(n * unit + 1 for n in counts if n),
            *(n * unit for n in counts),
        ]
        return tuple(dict.fromkeys(lengths))[:MAX_OPTIONS]

    def _at(self, sizes: dict[str, int], tiles: int) -> Iterator[Scenario]:
        state = self.sizes.values(sizes)
        decl, extents = self.sizes.tiles, self.sizes.extents(state)
        if decl is None or extents is None:
            yield self._scenario(sizes, [(None,)])
            return
        walk = walk_of(self.program, decl)
        shown = [walk.axis, walk.cluster] if self.padded else []
        total = walk_length(walk, extents) // walk.cluster
        groups: list[Group] = [
            tuple(
                self._tile(decl, extents, g * walk.cluster + r, shown) for r in range(walk.cluster)
            )
            for g in dict.fromkeys((*range(min(total, MAX_GROUPS)), total // 2, total - 1))
        ]
        kinds = self._kinds(state, groups)
        if isinstance(decl, Grid):
            yield from (self._scenario(sizes, [some[0]]) for some in kinds.values())
        elif len(kinds) == 1:
            yield self._scenario(sizes, groups[: min(total, tiles)], next(iter(kinds)))
        else:
            yield from (self._scenario(sizes, order) for order in _orders(list(kinds.values())))

    def _tile(
        self, decl: Grid | Tiles, extents: Sequence[int], index: int, padding: Sequence[int]
    ) -> Point | None:
        """A tile of the walk; with rings of a cluster, one beyond the end takes part as well."""
        walk = walk_of(self.program, decl)
        found = tile_at(walk, extents, index)
        if found is None and padding:
            wide = list(extents)
            wide[walk.axis] = -(-wide[walk.axis] // walk.cluster) * walk.cluster
            found = tile_at(walk, wide, index)
        return found

    def _kinds(self, state: UnitState, groups: Sequence[Group]) -> dict[object, list[Group]]:
        """Groups of tiles by what the program does at them."""
        kinds: dict[object, list[Group]] = {}
        for group in groups:
            profiles = [
                (point is None, self.sizes.profile(self.sizes.at(state, rank, point), point).key())
                for rank, point in enumerate(group)
            ]
            kinds.setdefault(tuple(profiles), []).append(group)
        return kinds

    def _scenario(
        self, sizes: dict[str, int], order: Sequence[Group], kind: object = None
    ) -> Scenario:
        """CTAs of a cluster that walk groups of tiles; a CTA of a grid has one group."""
        ctas = []
        persistent = bool(self.program.find(Tiles))
        for rank in range(len(order[0])):
            points = [group[rank] for group in order]
            if self.program.find(Grid) and points == [None]:
                continue
            state = self.sizes.at(self.sizes.values(sizes), rank, points[0])
            tiles = tuple(p for p in points if p is not None) if persistent else ()
            ctas.append(Cta(rank=rank, values=dict(state.vars), tiles=tiles))
        return Scenario(sizes=sizes, ctas=tuple(ctas), kind=kind)


def _orders(kinds: Sequence[list[Group]]) -> Iterator[Sequence[Group]]:
    """Orders in which a CTA may meet tiles of different kinds: 1 to 3 of them, each tile once."""
    some = [kinds[i] for i in dict.fromkeys((0, len(kinds) - 1, len(kinds) // 2))]
    orders = (order for n in (1, 2, 3) for order in product(range(len(some)), repeat=n))
    for order in islice(orders, MAX_ORDERS):
        left = [iter(kind) for kind in some]
        found = [next(left[kind], None) for kind in order]
        if None not in found:
            yield [group for group in found if group is not None]
