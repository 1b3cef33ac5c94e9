"""What a program does at some sizes: trip counts, outcomes of conditions, what they depend on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from cake.ir.nodes import Call, Expr, For, ResourceRef, TileLoop, View, walk_exprs
from cake.ir.program import Barrier, NamedBarrier, Pipeline, Program, Smem
from cake.verify.phase.outline import Act, Branch, Let, Node, Repeat, Ring, scalars_in
from cake.verify.phase.scalars import UNKNOWN, Compiler, UnitState, Value


class NoData:
    """Stands for tensors' contents where none are needed."""

    def element(self, tensor: str, index: tuple[int, ...]) -> int:
        return 1


@dataclass(slots=True)
class Profile:
    """What a program does at some sizes: trips of loops and outcomes of conditions."""

    trips: dict[int, int] = field(default_factory=dict)
    outcomes: dict[int, bool] = field(default_factory=dict)

    def key(self) -> tuple[tuple[int, int], ...]:
        return (*self.trips.items(), *((k, int(v)) for k, v in self.outcomes.items()))


class Measure:
    """Walks an outline once, for trips and outcomes."""

    def __init__(
        self, compiler: Compiler, state: UnitState, tile: Sequence[int] | None, found: Profile
    ) -> None:
        self.compile = compiler.compile
        self.state = state
        self.tile = tile
        self.found = found

    def value(self, e: Expr) -> Value:
        return self.compile(e)(self.state)

    def block(self, nodes: Sequence[Node]) -> None:
        for n in nodes:
            if isinstance(n, Let):
                self.state.vars[n.targets[0]] = (
                    self.value(n.value) if len(n.targets) == 1 else UNKNOWN
                )
            elif isinstance(n, Repeat):
                self.repeat(n)
            elif isinstance(n, Branch):
                self.branch(n)

    def branch(self, n: Branch) -> None:
        cond = self.value(n.stmt.cond)
        if isinstance(cond, bool):
            self.found.outcomes.setdefault(id(n.stmt), cond)
            self.block(n.then if cond else n.orelse)
            return
        self.block(n.then)
        self.block(n.orelse)

    def repeat(self, n: Repeat) -> None:
        s = n.stmt
        if isinstance(s, TileLoop):
            tile = self.tile or (0,) * len(s.vars)
            self.state.vars |= zip(s.vars, tile, strict=True)
        elif isinstance(s, For):
            bounds = [self.value(e) for e in (s.start, s.stop, s.step)]
            self.state.vars[s.var] = bounds[0]
            if all(isinstance(b, int) for b in bounds) and bounds[2] > 0:
                self.found.trips.setdefault(id(s), len(range(*bounds)))
        self.block(n.body)


def control(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Loops and conditions of an outline, with the scalars from which they follow."""
    lets = list(_lets(nodes))
    needed = {n for e in _decisions(nodes) for n in scalars_in((e,))}
    before = -1
    while len(needed) != before:
        before = len(needed)
        for let in lets:
            if not needed.isdisjoint(let.targets):
                needed.update(scalars_in((let.value,)))
    return tuple(_kept(nodes, needed))


def _kept(nodes: Iterable[Node], needed: set[str]) -> Iterator[Node]:
    for n in nodes:
        if isinstance(n, Branch):
            then, orelse = _kept(n.then, needed), _kept(n.orelse, needed)
            yield replace(n, then=tuple(then), orelse=tuple(orelse))
        elif isinstance(n, Repeat):
            yield replace(n, body=tuple(_kept(n.body, needed)))
        elif isinstance(n, Let) and not needed.isdisjoint(n.targets):
            yield n


def _lets(nodes: Iterable[Node]) -> Iterator[Let]:
    for n in nodes:
        if isinstance(n, Let):
            yield n
        elif isinstance(n, Branch):
            yield from _lets((*n.then, *n.orelse))
        elif isinstance(n, Repeat):
            yield from _lets(n.body)


def _decisions(nodes: Iterable[Node]) -> Iterator[Expr]:
    """Conditions and ranges of loops."""
    for n in nodes:
        if isinstance(n, Branch):
            yield n.stmt.cond
            yield from _decisions((*n.then, *n.orelse))
        elif isinstance(n, Repeat):
            if isinstance(n.stmt, For):
                yield from (n.stmt.start, n.stmt.stop, n.stmt.step)
            yield from _decisions(n.body)


def heads(nodes: Iterable[Node]) -> Iterator[Expr]:
    for n in nodes:
        if isinstance(n, Let):
            yield n.value
        elif isinstance(n, Branch):
            yield n.stmt.cond
            yield from heads(n.then)
            yield from heads(n.orelse)
        elif isinstance(n, Repeat):
            if isinstance(n.stmt, For):
                yield from (n.stmt.start, n.stmt.stop, n.stmt.step)
            yield from heads(n.body)


def stages(program: Program, nodes: Iterable[Node]) -> Iterator[int]:
    """Stages and slots of everything that a loop's body mentions."""
    for n in nodes:
        names: list[str] = []
        if isinstance(n, Ring):
            names = [n.bracket.pipeline]
        elif isinstance(n, Act):
            names = list(_mentioned(n.call))
        elif isinstance(n, Repeat):
            yield from stages(program, n.body)
        elif isinstance(n, Branch):
            yield from stages(program, (*n.then, *n.orelse))
        for name in names:
            decl = program.resource(name)
            if isinstance(decl, Pipeline):
                yield decl.stages
            elif isinstance(decl, Barrier | NamedBarrier):
                yield decl.slots
            elif isinstance(decl, Smem) and decl.stages:
                yield decl.stages


def _mentioned(call: Call) -> Iterator[str]:
    for e in walk_exprs(call):
        if isinstance(e, ResourceRef):
            yield e.name
        elif isinstance(e, View):
            yield e.base
