"""A unit executes the outline of its role: control flow and scalars, its events being listed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cake.ir.nodes import Expr, For, Stmt, TileLoop, While
from cake.verify.phase import events as ev
from cake.verify.phase.outline import (
    Act,
    Branch,
    Let,
    Node,
    Registers,
    Repeat,
    Ring,
    Weight,
)
from cake.verify.phase.perform import Performer
from cake.verify.phase.scalars import UNKNOWN, Compiler, DataSource, Value
from cake.verify.phase.unit import Beyond, Unit

MAX_EVENTS = 200_000
"""Events of one system; a larger one is left to other layers."""
MAX_ROUNDS = {Weight.NOTHING: 256, Weight.ACCESSES: 64}
"""Rounds of a loop without phases that are executed one by one; longer ones stand for any round."""
MAX_MASKED_ROUNDS = 16
"""The same for loops whose trip counts differ between threads."""


CHOSEN_TRIPS = (1, 0, 2)
"""Trip counts of a loop with phases whose range depends on data that one role alone sees."""


class Choices(DataSource, Protocol):
    """Decides what depends on data."""

    def begin(self, role: str) -> None:
        """What is asked for from now on is asked by a role."""
        ...

    def pick(self, place: Stmt, occurrence: int, options: int) -> int:
        """Which of some options is taken the n-th time that a unit comes to a place.

        All units of a role get the same answer.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Cta:
    """A CTA: its rank in the cluster, kernel-level values, and the tiles that it walks."""

    rank: int
    values: Mapping[str, Value]
    tiles: Sequence[tuple[int, ...]]


class Walk:
    """Executes the outline of a role for one unit."""

    def __init__(
        self, compiler: Compiler, performer: Performer, unit: Unit, cta: Cta, choices: Choices
    ) -> None:
        self.compile = compiler.compile
        self.performer = performer
        self.unit = unit
        self.state = unit.state
        self.cta = cta
        self.choices = choices
        self.occurrences: dict[int, int] = {}

    def block(self, nodes: tuple[Node, ...]) -> None:
        for n in nodes:
            self.node(n)

    def node(self, n: Node) -> None:
        if isinstance(n, Act):
            slot = self.performer.act(self.unit, n)
            if slot is not None and n.target is not None:
                self.state.vars[n.target] = slot
            if len(self.unit.lists[0]) > MAX_EVENTS:
                raise Beyond(f"more than {MAX_EVENTS} events")
        elif isinstance(n, Let):
            self.let(n)
        elif isinstance(n, Registers):
            self.unit.all(ev.Use(n.place, n.reads, n.writes))
        elif isinstance(n, Ring):
            self.ring(n)
        elif isinstance(n, Repeat):
            self.repeat(n)
        else:
            self.branch(n)

    def value(self, e: Expr) -> Value:
        return self.compile(e)(self.state)

    def let(self, n: Let) -> None:
        values = self.state.vars
        if len(n.targets) > 1:
            values |= dict.fromkeys(n.targets, UNKNOWN)
            return
        (name,) = n.targets
        new, mask = self.value(n.value), self.state.mask
        if mask is not None and name in values:
            old = values[name]
            if new is UNKNOWN or old is UNKNOWN or mask is UNKNOWN:
                new = UNKNOWN
            else:
                new = np.where(mask, new, old)
        values[name] = new

    def ring(self, n: Ring) -> None:
        s, unit = n.bracket, self.unit
        if self.state.mask is not None:
            raise Beyond(f"ring {s.pipeline} under a condition that differs between threads")
        if n.enter:
            if s.side == "fill":
                stage = self.performer.signals.acquire(unit, s.pipeline, s)
            else:
                stage = self.performer.signals.wait(unit, s.pipeline, s.loc)
            self.state.vars[s.slot] = stage
            return
        stage = self.state.vars[s.slot]
        if s.side == "fill":
            self.performer.signals.commit(unit, s.pipeline, stage, s)
        else:
            self.performer.signals.release(unit, s.pipeline, stage, s.loc)

    # -- branches ----------------------------------------------------------------------------------

    def branch(self, n: Branch) -> None:
        cond = self.value(n.stmt.cond)
        if isinstance(cond, np.ndarray):
            self.masked(cond, n.then)
            self.masked(~cond, n.orelse)
        elif cond is not UNKNOWN:
            self.block(n.then if cond else n.orelse)
        elif n.weight < Weight.EVENTS:
            self.either(n)
        elif n.shared or _varying(n.stmt.cond):
            raise Beyond(f"the condition in line {n.stmt.loc.line}, which depends on data")
        else:
            self.block(n.orelse if self.pick(n.stmt, 2) else n.then)

    def pick(self, place: Stmt, options: int) -> int:
        """Choose what depends on data."""
        seen = self.occurrences.get(id(place), 0)
        self.occurrences[id(place)] = seen + 1
        return self.choices.pick(place, seen, options)

    def masked(self, mask: Value, nodes: tuple[Node, ...]) -> None:
        """Execute a block for some of the threads."""
        outer = self.state.mask
        if outer is UNKNOWN or mask is UNKNOWN:
            self.state.mask = UNKNOWN
        else:
            self.state.mask = mask if outer is None else outer & mask
            if not np.any(self.state.mask):
                nodes = ()
            elif np.all(self.state.mask):
                self.state.mask = None
        self.block(nodes)
        self.state.mask = outer

    def either(self, n: Branch) -> None:
        """Both blocks may be executed; what they assign is unknown unless they agree."""
        before = dict(self.state.vars)
        self.masked(UNKNOWN, n.then)
        after, self.state.vars = self.state.vars, before
        self.masked(UNKNOWN, n.orelse)
        for name in n.assigned:
            if not np.array_equal(after.get(name), self.state.vars.get(name)):  # type: ignore[arg-type]
                self.state.vars[name] = UNKNOWN

    # -- loops -------------------------------------------------------------------------------------

    def repeat(self, n: Repeat) -> None:
        if isinstance(n.stmt, TileLoop):
            for i, tile in enumerate(self.cta.tiles):
                self.state.vars |= zip(n.stmt.vars, tile, strict=True)
                self.block(n.body)
                self.mark(n.stmt, i)
        elif isinstance(n.stmt, For):
            self.counted(n, n.stmt)
        else:
            self.conditional(n, n.stmt)

    def counted(self, n: Repeat, s: For) -> None:
        bounds = [self.value(e) for e in _range(s)]
        if any(b is UNKNOWN for b in bounds):
            if n.weight < Weight.EVENTS or n.shared or any(_varying(e) for e in _range(s)):
                self.any_round(n, s)
                return
            start, _, step = bounds
            for i in range(CHOSEN_TRIPS[self.pick(s, len(CHOSEN_TRIPS))]):
                known = start is not UNKNOWN and step is not UNKNOWN
                self.state.vars[s.var] = start + i * step if known else UNKNOWN
                self.block(n.body)
        elif any(isinstance(b, np.ndarray) for b in bounds):
            self.masked_rounds(n, s, *bounds)
        else:
            if bounds[2] < 1:
                raise Beyond(f"the step {bounds[2]} of the loop in line {s.loc.line}")
            rounds = range(*map(int, bounds))
            if n.weight < Weight.EVENTS and len(rounds) > MAX_ROUNDS[n.weight]:
                self.any_round(n, s)
                return
            for i in rounds:
                self.state.vars[s.var] = i
                self.block(n.body)

    def mark(self, s: TileLoop, number: int) -> None:
        """A tile ends."""
        steps: dict[str, int] = {}
        for (ring, _), n in self.unit.steps.items():
            steps[ring] = max(steps.get(ring, 0), n)
        self.unit.all(ev.Mark(s.loc, number, tuple(steps.items())))

    def masked_rounds(self, n: Repeat, s: For, start: Value, stop: Value, step: Value) -> None:
        """A loop whose threads make different numbers of rounds."""
        if n.weight == Weight.EVENTS:
            raise Beyond(f"the loop in line {s.loc.line}, whose trip count differs between threads")
        rounds = np.maximum(0, -(-(stop - start) // step))
        if rounds.max() > MAX_MASKED_ROUNDS:
            self.any_round(n, s)
            return
        for i in range(int(rounds.max())):
            self.state.vars[s.var] = start + i * step
            self.masked(rounds > i, n.body)

    def any_round(self, n: Repeat, s: For | While) -> None:
        """Execute a body once, with scalars that stand for those of any round."""
        if n.weight == Weight.EVENTS:
            raise Beyond(f"the trip count of the loop in line {s.loc.line}, which depends on data")
        changed = [*n.assigned, *((s.var,) if isinstance(s, For) else ())]
        self.state.vars |= dict.fromkeys(changed, UNKNOWN)
        self.masked(UNKNOWN, n.body)
        self.state.vars |= dict.fromkeys(changed, UNKNOWN)

    def conditional(self, n: Repeat, s: While) -> None:
        limit = MAX_ROUNDS[Weight.NOTHING]
        for _ in range(limit):
            cond = self.value(s.cond)
            if isinstance(cond, np.ndarray) or cond is UNKNOWN:
                self.any_round(n, s)
                return
            if not cond:
                return
            self.block(n.body)
        raise Beyond(f"the loop in line {s.loc.line}, which takes more than {limit} rounds")


def _range(s: For) -> tuple[Expr, Expr, Expr]:
    return (s.start, s.stop, s.step)


def _varying(e: Expr) -> bool:
    return bool(getattr(e.type, "varying", False))
