"""From a program at given sizes to the events of all actors of one cluster."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from cake.ir.nodes import RoleBody, walk_calls
from cake.ir.program import Program, Role
from cake.verify.phase import events as ev
from cake.verify.phase.events import System
from cake.verify.phase.outline import Outliner, loops_around
from cake.verify.phase.perform import Performer
from cake.verify.phase.places import Places, tensor_sizes
from cake.verify.phase.scalars import Compiler, UnitState
from cake.verify.phase.steady import regular
from cake.verify.phase.targets import Targets
from cake.verify.phase.unit import WARP, Part, Unit
from cake.verify.phase.walk import Choices, Cta, Walk
from cake.verify.phase.wiring import Wiring


class Expander:
    """Expands one program, at any sizes."""

    def __init__(self, program: Program) -> None:
        self.program = program
        outliner = Outliner(program)
        self.written = outliner.written
        self.compiler = Compiler(
            frozenset(t.name for t in program.tensors if t.dtype.is_int) - self.written
        )
        self.targets = Targets(program, self.compiler)
        self.places = Places(program)
        self.outlines = {r.role: outliner.outline(r.body) for r in program.roles}
        self.parts = {r.role: _parts(self._role(r.role), r) for r in program.roles}
        self.loops = dict(x for o in self.outlines.values() for x in loops_around(o))
        """Heads of the innermost loops around places of events."""
        self.regular = all(map(regular, self.outlines.values()))

    def expand(self, ctas: Sequence[Cta], choices: Choices) -> System:
        """List the events of every actor.

        Raises:
            Beyond: control flow around phases depends on data in a way that cannot be followed.
        """
        wiring = Wiring(self.program, tuple(c.rank for c in ctas))
        performer = Performer(
            self.program, self.compiler, self.targets, self.places, wiring, self.written
        )
        actors: list[ev.Actor] = []
        for cta in ctas:
            host = UnitState(1, cta.rank, choices, dict(cta.values))
            self.places.sizes = tensor_sizes(self.program, cta.values, self.compiler, host)
            for body in self.program.roles:
                role = self._role(body.role)
                for index in range(role.units):
                    choices.begin(body.role)
                    unit = self._unit(cta, body, role, index, choices)
                    Walk(self.compiler, performer, unit, cta, choices).block(
                        self.outlines[body.role]
                    )
                    actors += _actors(unit)
        return System(barriers=tuple(wiring.barriers), actors=tuple(actors))

    def _role(self, name: str) -> Role:
        role = self.program.resource(name)
        assert isinstance(role, Role)
        return role

    def _unit(self, cta: Cta, body: RoleBody, role: Role, index: int, choices: Choices) -> Unit:
        values = dict(cta.values)
        if body.unit is not None:
            values[body.unit] = index
        state = UnitState(role.unit_threads, cta.rank, choices, values)
        parts = self.parts[role.name]
        return Unit(body.role, index, cta.rank, state, parts, tuple([] for _ in parts))


def _parts(role: Role, body: RoleBody) -> tuple[Part, ...]:
    """The parts of a unit that are actors of their own."""
    if not role.warpgroup:
        return (Part(0, WARP),)
    apart = any(call.op in ("warp", "thread") for call in walk_calls(body.body))
    bounds = (0, 1, 2, 3, 4) if apart else (0, 1, 4)
    return tuple(Part(a * WARP, b * WARP) for a, b in pairwise(bounds))


def _actors(unit: Unit) -> list[ev.Actor]:
    return [
        ev.Actor(
            role=unit.role,
            unit=unit.index,
            warps=(part.low // WARP, part.high // WARP) if len(unit.parts) > 1 else None,
            cta=unit.rank,
            threads=part.threads,
            events=tuple(events),
        )
        for part, events in zip(unit.parts, unit.lists, strict=True)
    ]
