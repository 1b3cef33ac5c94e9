"""When the tiles of a persistent loop have become steady, so that more of them show nothing new.

At the end of each tile every actor leaves a mark: its clock, and the steps it has taken of its
rings. Relative to how far everybody has come, with the stages of a ring turned by its steps, the
marks say how the tiles lie to each other. If they stay the same over as many tiles as every ring
needs to go round, then the next tile starts from what the last one started from. This holds for
*regular* loops, in whose rounds nothing decisive differs: tile coordinates and what is carried
from tile to tile reach global tensors only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.ir.nodes import (
    Assign,
    Block,
    Expr,
    For,
    TensorRef,
    TileLoop,
    VarRef,
    View,
    walk_exprs,
    walk_stmts,
)
from cake.ir.types import Slot
from cake.ops.base import lookup
from cake.verify.phase.clocks import Clock, Components
from cake.verify.phase.events import Mark, System
from cake.verify.phase.outline import Act, Branch, Node, Repeat

Slots = list[tuple[int, int, int]]
"""Of a side of a ring: stage, causal and visible component of each barrier."""


@dataclass(frozen=True, slots=True)
class Marked:
    """A mark that an actor has left; ``issued`` is the work it had given to its engines."""

    actor: int
    mark: Mark
    clock: Clock
    issued: tuple[tuple[int, int], ...]


def regular(nodes: Iterable[Node]) -> bool:
    """Whether all persistent loops of a role are regular."""
    for n in nodes:
        if isinstance(n, Branch) and not regular((*n.then, *n.orelse)):
            return False
        if isinstance(n, Repeat):
            if not isinstance(n.stmt, TileLoop):
                if not regular(n.body):
                    return False
            elif not _changing(n.stmt).isdisjoint(_decisive(n.body)):
                return False
    return True


def _changing(loop: TileLoop) -> set[str]:
    """Names whose values may differ from tile to tile."""
    found = set(loop.vars) | _carried(loop.body)
    before = -1
    while len(found) != before:
        before = len(found)
        for s in walk_stmts(loop.body):
            if isinstance(s, Assign) and not found.isdisjoint(_names(s.value)):
                found.update(s.targets)
    return found


def _carried(body: Block) -> set[str]:
    """Names that a body assigns but does not declare."""
    assigned: set[str] = set()
    declared: set[str] = set()
    for s in walk_stmts(body):
        if isinstance(s, Assign):
            for name, new in zip(s.targets, s.declares, strict=True):
                (declared if new else assigned).add(name)
    return assigned - declared


def _decisive(nodes: Iterable[Node]) -> Iterator[str]:
    """Names on which stages, slots, phases, offsets, masks and control flow depend."""
    for n in nodes:
        if isinstance(n, Act):
            primitive = lookup(n.call.op)
            assert primitive is not None
            for p, a in zip(primitive.params, n.call.args, strict=True):
                if a is not None and p.name not in ("init", "value"):
                    yield from _names(a)
        elif isinstance(n, Branch):
            yield from _names(n.stmt.cond)
            yield from _decisive((*n.then, *n.orelse))
        elif isinstance(n, Repeat):
            if isinstance(n.stmt, For):
                for e in (n.stmt.start, n.stmt.stop, n.stmt.step):
                    yield from _names(e)
            yield from _decisive(n.body)


def _names(e: Expr) -> Iterator[str]:
    if isinstance(e, TensorRef):
        return
    parts = [e.stage, *e.offsets] if isinstance(e, View) else [e]
    for part in parts:
        for x in () if part is None else (part, *walk_exprs(part)):
            if isinstance(x, VarRef) and not isinstance(x.type, Slot):
                yield x.name


class Steadiness:
    """Tells whether the tiles of a run were steady in the end."""

    def __init__(self, system: System, components: Components, marked: Iterable[Marked]) -> None:
        self.system = system
        self.components = components
        self.tiles: list[dict[int, Marked]] = []
        for m in marked:
            while len(self.tiles) <= m.mark.round:
                self.tiles.append({})
            self.tiles[m.mark.round][m.actor] = m
        self.rings: dict[tuple[str, int], Slots] = {}
        for i, b in enumerate(system.barriers):
            if b.kind in ("full", "empty"):
                at = (b.slot, components.phases(i), components.landed(i))
                self.rings.setdefault((b.name, b.cta), []).append(at)

    def reached(self) -> bool:
        """Whether the last tiles, enough for every ring to go round, left the same marks."""
        if len(self.tiles) < 2:
            return False
        window = self._window(*self.tiles[-2:])
        last = self.tiles[-window - 1 :]
        if len(last) <= window or any(marks.keys() != last[0].keys() for marks in last):
            return False
        first, *others = map(self._relative, last)
        return all(np.array_equal(first, x) for x in others)

    def _window(self, before: dict[int, Marked], after: dict[int, Marked]) -> int:
        """Tiles in which every ring that turns goes round once."""
        first, found = self._steps(before), 1
        for key, steps in self._steps(after).items():
            moved = steps - first.get(key, 0)
            if moved:
                found = max(found, -(-len(self.rings[key]) // 2 // moved))
        return found

    def _steps(self, marks: dict[int, Marked]) -> dict[tuple[str, int], int]:
        """Steps of each ring: the largest number that anybody has taken."""
        found: dict[tuple[str, int], int] = {}
        for m in marks.values():
            cta = self.system.actors[m.actor].cta
            for ring, steps in m.mark.steps:
                found[ring, cta] = max(found.get((ring, cta), 0), steps)
        return found

    def _relative(self, marks: dict[int, Marked]) -> Any:
        """Clocks of the actors relative to how far each has come: array (actors, components)."""
        clocks = np.stack([marks[a].clock for a in sorted(marks)])
        base = clocks.max(axis=0)
        learnt = base > 0
        c = self.components
        for actor, m in marks.items():
            for component in (actor, c.states[actor].time, c.states[actor].fenced):
                base[component] = m.clock[actor]
            for component, issued in m.issued:
                base[component] = issued
        # What nobody ever learns of stays as it is, however long it goes on.
        relative = np.where(learnt, clocks - base, 0)
        for key, steps in self._steps(marks).items():
            slots = self.rings[key]
            stages = len(slots) // 2
            order = sorted(range(len(slots)), key=lambda i: (steps - 1 - slots[i][0]) % stages)
            fills = np.array([_fills(slot, steps, stages) for slot, _, _ in slots])
            for kind in (1, 2):
                columns = [slot[kind] for slot in slots]
                relative[:, columns] = (clocks[:, columns] - fills)[:, order]
        return relative


def _fills(slot: int, steps: int, stages: int) -> int:
    """How often a slot was filled in so many steps of its ring."""
    return max(0, -(-(steps - slot) // stages))
