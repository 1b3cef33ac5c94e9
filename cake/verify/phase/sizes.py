"""Sizes at which a program shows all its trip counts: {0, 1, 2, S-1, S, S+1, 2S, 2S+1} of every
loop that steps through a ring of S stages, 1 to 3 tiles, both outcomes of every known condition.

Sizes are found by trying: a dimension takes multiples of the constants that the program divides by
or steps by, and a value is kept if some loop or condition does something new at it. Equal
dimensions are equal everywhere, and the guards hold.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import prod

from cake.ir.nodes import Const, Expr, For, TileLoop, walk_exprs
from cake.ir.program import Grid, Program, ScalarParam, Tiles
from cake.ops.raster import tile_at, walk_length, walk_of
from cake.verify.phase.expand import Expander
from cake.verify.phase.measure import Measure, NoData, Profile, control, heads, stages
from cake.verify.phase.outline import Branch, Node, Repeat, Weight
from cake.verify.phase.scalars import UnitState

MAX_VECTORS = 40
"""Combinations of sizes for one program."""
FEW_TILES, MANY_TILES = 3, 9
"""Tiles that a CTA walks at most, and those of the walks that are tried at small trip counts."""


class Sizes:
    """Measures one program."""

    def __init__(self, expander: Expander) -> None:
        self.expander = expander
        self.program: Program = expander.program
        self.names = [
            *self.program.dims,
            *(p.name for p in self.program.params
              if isinstance(p, ScalarParam) and p.dtype.is_int),
        ]  # fmt: skip
        self.desired: dict[int, frozenset[int]] = {}
        self.lines: dict[int, int] = {}
        """Lines of the loops through phases."""
        self.stages: set[int] = set()
        """Stages and slots of what persistent loops step through."""
        self.control = {role: control(nodes) for role, nodes in expander.outlines.items()}
        for nodes in expander.outlines.values():
            self._loops(nodes)
        self.units = sorted(set(self._units()))
        self.tiles: Grid | Tiles | None = next(
            iter((*self.program.find(Grid), *self.program.find(Tiles))), None
        )

    # -- what to look for --------------------------------------------------------------------------

    def _loops(self, nodes: Sequence[Node]) -> None:
        for n in nodes:
            if isinstance(n, Repeat):
                if isinstance(n.stmt, For) and n.weight == Weight.EVENTS:
                    self.lines[id(n.stmt)] = n.stmt.loc.line
                    sizes = set(stages(self.program, n.body)) or {1}
                    self.desired[id(n.stmt)] = frozenset(
                        t for s in sizes for t in (0, 1, 2, s - 1, s, s + 1, 2 * s, 2 * s + 1)
                    )
                if isinstance(n.stmt, TileLoop):
                    self.stages |= set(stages(self.program, n.body))
                self._loops(n.body)
            elif isinstance(n, Branch):
                self._loops(n.then)
                self._loops(n.orelse)

    def _units(self) -> Iterator[int]:
        """Constants by which sizes are divided or stepped."""
        found: list[Expr] = [let.value for let in self.program.lets]
        found += [g.cond for g in self.program.guards]
        for decl in (*self.program.find(Grid), *self.program.find(Tiles)):
            found += decl.extents
        for nodes in self.expander.outlines.values():
            found += heads(nodes)
        for head in found:
            for e in (head, *walk_exprs(head)):
                if isinstance(e, Const) and isinstance(e.value, int) and 2 <= e.value <= 4096:
                    yield e.value

    # -- measuring ---------------------------------------------------------------------------------

    def values(self, sizes: Mapping[str, int], rank: int = 0) -> UnitState:
        """Kernel-level values at some sizes, grid coordinates being zero."""
        state = UnitState(1, rank, NoData(), dict(sizes))
        for grid in self.program.find(Grid):
            state.vars |= dict.fromkeys(grid.vars, 0)
        self.evaluate_lets(state)
        return state

    def evaluate_lets(self, state: UnitState) -> None:
        for let in self.program.lets:
            state.vars[let.targets[0]] = self.expander.compiler.compile(let.value)(state)

    def extents(self, state: UnitState) -> list[int] | None:
        """Extents of the grid or tile set; None if they depend on data."""
        if self.tiles is None:
            return []
        found = [self.expander.compiler.compile(e)(state) for e in self.tiles.extents]
        return found if all(isinstance(n, int) for n in found) else None

    def admitted(self, sizes: Mapping[str, int]) -> bool:
        """Whether the guards hold, as far as they can be evaluated, and there is a tile."""
        state = self.values(sizes)
        if any(self.expander.compiler.compile(g.cond)(state) is False for g in self.program.guards):
            return False
        extents = self.extents(state)
        return extents is None or all(n > 0 for n in extents)

    def profile(self, state: UnitState, tile: Sequence[int] | None = None) -> Profile:
        """Walk every role once, loop bodies with their first round."""
        found = Profile()
        for body in self.program.roles:
            variables = dict(state.vars)
            if body.unit is not None:
                variables[body.unit] = 0
            unit = UnitState(1, state.rank, NoData(), variables)
            walk = Measure(self.expander.compiler, unit, tile, found)
            walk.block(self.control[body.role])
        return found

    # -- choosing ----------------------------------------------------------------------------------

    def vectors(self) -> list[tuple[dict[str, int], int]]:
        """Combinations of sizes, the smallest first, each with the most tiles to walk."""
        base = self._base()
        if base is None:
            return [({}, FEW_TILES)] if not self.names else []
        choices = {name: self._choices(name, base) for name in self.names}
        every = [
            dict(zip(choices, picked, strict=True))
            for picked in _combinations(list(choices.values()), list(base.values()))
        ]
        admitted = [v for v in every if self.admitted(v)] or [base]
        admitted.sort(key=lambda v: (sum(v.values()), tuple(v.values())))
        few = [(v, FEW_TILES) for v in admitted]
        return few + [walk for v in self._short(admitted) for walk in self._walks(v)]

    def _short(self, vectors: list[dict[str, int]]) -> list[dict[str, int]]:
        """The smallest sizes at which every loop makes a round, or else the smallest."""
        working = (v for v in vectors if all(self.profile(self.values(v)).trips.values()))
        return [*working, *vectors][:1]

    def _walks(self, sizes: dict[str, int]) -> Iterator[tuple[dict[str, int], int]]:
        """Sizes with so many tiles that rings which take a step a tile go round once and twice."""
        counts = {n for s in self.stages for n in (s + 1, 2 * s + 1)}
        for tiles in sorted(n for n in counts if FEW_TILES < n <= MANY_TILES):
            for name, value in product(self.names, self._candidates()):
                more = {**sizes, name: value}
                if self._has_tiles(more, tiles) and self._same_rounds(sizes, more):
                    yield more, tiles
                    break

    def _has_tiles(self, sizes: Mapping[str, int], tiles: int) -> bool:
        extents = self.extents(self.values(sizes)) if self.admitted(sizes) else None
        return extents is not None and prod(extents) >= tiles

    def _same_rounds(self, a: Mapping[str, int], b: Mapping[str, int]) -> bool:
        return self.profile(self.values(a)).key() == self.profile(self.values(b)).key()

    def _candidates(self) -> list[int]:
        largest = max((max(d) for d in self.desired.values()), default=3)
        counts = range(1, largest + 3)
        units = {1, *self.units}
        found = {u * t for u in units for t in counts} | {u + 1 for u in units}
        found |= {u - 1 for u in units if u > 2}
        return sorted(found)

    def _base(self) -> dict[str, int] | None:
        """Small sizes that the guards admit."""
        values = sorted({1, *self.units, *(2 * u for u in self.units[-2:])})
        for shared in values:
            sizes = dict.fromkeys(self.names, shared)
            if self.admitted(sizes):
                return sizes
        sizes = dict.fromkeys(self.names, 1)
        for picked in product(values, repeat=min(3, len(self.names))):
            for i, name in enumerate(self.names):
                sizes[name] = picked[i % len(picked)]
            if self.admitted(sizes):
                return sizes
        return None

    def _choices(self, name: str, base: Mapping[str, int]) -> list[int]:
        """Values of one size at which something new happens, the others being as in ``base``."""
        seen: set[tuple[int, int]] = set()
        kept: list[int] = []
        shown: set[frozenset[tuple[int, int]]] = set()
        scalars = (0, 1) if name not in self.program.dims else ()
        # A dimension of 0 comes last, so that the others are not tried beside empty ones only.
        for value in dict.fromkeys((*scalars, *self._candidates(), 0)):
            sizes = {**base, name: value}
            if not self.admitted(sizes):
                continue
            wanted = frozenset(self._wanted(sizes))
            if not kept or not wanted <= seen:
                seen |= wanted
                shown.add(wanted)
                kept.append(value)
        return kept if len(shown) > 1 else [base[name]]

    def _wanted(self, sizes: Mapping[str, int]) -> set[tuple[int, int]]:
        """The trip counts, outcomes and tile counts at some sizes that are to be tried."""
        state = self.values(sizes)
        extents = self.extents(state)
        wanted: set[tuple[int, int]] = set()
        for tile in self._ends(extents):
            found = self.profile(self.at(state, state.rank, tile), tile)
            trips = found.trips.items()
            wanted |= {(loop, n) for loop, n in trips if n in self.desired.get(loop, ())}
            wanted |= {(branch, -1 - int(yes)) for branch, yes in found.outcomes.items()}
        if isinstance(self.tiles, Tiles) and extents:
            wanted.add((0, min(prod(extents), FEW_TILES)))
        wanted.add((1, self._ranks(extents)))
        return wanted

    def _ends(self, extents: Sequence[int] | None) -> list[tuple[int, ...] | None]:
        """The first and the last tile."""
        if self.tiles is None or not extents:
            return [None]
        walk = walk_of(self.program, self.tiles)
        last = walk_length(walk, extents) - 1
        return [tile_at(walk, extents, 0), *([tile_at(walk, extents, last)] if last else [])]

    def at(self, state: UnitState, rank: int, tile: tuple[int, ...] | None) -> UnitState:
        """The state of a CTA of the cluster that has a tile of the grid or tile set."""
        here = UnitState(1, rank, state.data, dict(state.vars))
        if isinstance(self.tiles, Grid) and tile is not None:
            here.vars |= zip(self.tiles.vars, tile, strict=True)
        self.evaluate_lets(here)
        return here

    def _ranks(self, extents: Sequence[int] | None) -> int:
        """CTAs with a tile in the first cluster."""
        if self.tiles is None or not extents:
            return 1
        walk = walk_of(self.program, self.tiles)
        return sum(tile_at(walk, extents, r) is not None for r in range(walk.cluster))


def _combinations(choices: list[list[int]], base: list[int]) -> list[tuple[int, ...]]:
    """All combinations if they are few; else each value with small, usual and large others."""
    if prod(map(len, choices)) <= MAX_VECTORS:
        return list(product(*choices))
    found: dict[tuple[int, ...], None] = {}
    usual = [values[len(values) // 2] for values in choices]
    for others in ([values[0] for values in choices], usual):
        for i, values in enumerate(choices):
            for value in values:
                found[(*others[:i], value, *others[i + 1 :])] = None
    longest = max(map(len, choices))
    for i in range(longest):
        found[tuple(c[i % len(c)] for c in choices)] = None
    found[tuple(base)] = None
    return list(found)
