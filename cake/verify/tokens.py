"""Do the roles of a program come to an end? One run decides for one set of sizes.

Rings and hardware barriers block without a choice: which of several ready roles goes first changes
nothing that another can see (the network is a Kahn process network with bounded channels). So a
single run in any order either ends, or shows the deadlock that every order runs into.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from cake.ir.program import NamedBarrier, Pipeline, Program
from cake.verify.trace import Event

MAX_UNITS = 4
"""Roles of more units run as one actor: their units are warps that do the same."""


@dataclass(frozen=True, slots=True)
class Actor:
    """A unit of a role, or all of its units (``weight`` of them) that take the same steps."""

    role: str
    unit: int
    weight: int
    threads: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """An actor that cannot go on, and the step it waits at."""

    actor: Actor
    event: Event


@dataclass(slots=True)
class _Barrier:
    """Threads that have arrived, and how often the barrier has opened. ``joined`` is the step with
    which an actor arrived last, and the generation that it joined."""

    threads: int
    arrived: int = 0
    opened: int = 0
    joined: dict[Actor, tuple[int, int]] = field(default_factory=dict)


def actors(program: Program) -> tuple[Actor, ...]:
    """Who takes part in a run."""
    found: list[Actor] = []
    for r in program.role_decls():
        weight = 1 if r.units <= MAX_UNITS else r.units
        threads = r.unit_threads * weight
        found += [Actor(r.name, u, weight, threads) for u in range(r.units // weight)]
    return tuple(found)


class TokenRun:
    """Runs the steps of all actors of one CTA."""

    def __init__(self, program: Program, steps: Mapping[Actor, list[Event]]) -> None:
        self.steps = steps
        rings: tuple[Pipeline, ...] = program.find(Pipeline)
        units = {r.name: r.units for r in program.role_decls()}
        self.rings = {p.name: p for p in rings}
        self.sides = {p.name: (units[p.producer], units[p.consumer]) for p in rings}
        self.committed: Counter[tuple[str, int]] = Counter()
        self.released: Counter[tuple[str, int]] = Counter()
        everyone = sum(a.threads for a in steps)
        self.barriers = {"cta": _Barrier(everyone), "cluster": _Barrier(everyone)}
        for b in program.find(NamedBarrier):
            self.barriers |= {f"{b.name}[{i}]": _Barrier(b.threads) for i in range(b.slots)}

    def run(self) -> tuple[Blocked, ...]:
        """The actors that are blocked in the end; none if all of them finish."""
        at = dict.fromkeys(self.steps, 0)
        moved = True
        while moved:
            moved = False
            for actor, steps in self.steps.items():
                while at[actor] < len(steps) and self._passes(actor, steps[at[actor]], at[actor]):
                    at[actor] += 1
                    moved = True
        return tuple(
            Blocked(actor, steps[at[actor]])
            for actor, steps in self.steps.items()
            if at[actor] < len(steps)
        )

    def _passes(self, actor: Actor, event: Event, position: int) -> bool:
        """Whether a step can be taken now; takes it if so."""
        key = (event.what, event.step)
        if event.kind == "acquire":
            before = event.step - self.rings[event.what].stages
            _, consumers = self.sides[event.what]
            return before < 0 or self.released[event.what, before] >= consumers
        if event.kind == "wait":
            producers, _ = self.sides[event.what]
            return self.committed[key] >= producers
        if event.kind == "commit":
            self.committed[key] += actor.weight
        elif event.kind == "release":
            self.released[key] += actor.weight
        else:
            return self._barrier(actor, event, position)
        return True

    def _barrier(self, actor: Actor, event: Event, position: int) -> bool:
        """Arrive once at a barrier; a ``sync`` passes when the generation it joined opens."""
        barrier = self.barriers.get(event.what)
        if barrier is None:
            return True  # a slot out of range is another rule's finding
        if barrier.joined.get(actor, (-1, 0))[0] != position:
            barrier.joined[actor] = (position, barrier.opened)
            barrier.arrived += actor.threads
            while barrier.arrived >= barrier.threads:
                barrier.arrived -= barrier.threads
                barrier.opened += 1
        return event.kind == "arrive" or barrier.opened > barrier.joined[actor][1]
