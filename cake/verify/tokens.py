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


@dataclass(frozen=True, slots=True)
class Blocked:
    """A role that cannot go on, and the step it waits at."""

    role: str
    event: Event


@dataclass(slots=True)
class _Barrier:
    """Threads that have arrived, and how often the barrier has opened."""

    threads: int
    arrived: int = 0
    opened: int = 0
    passed: dict[str, int] = field(default_factory=dict)


class TokenRun:
    """Runs the steps of all roles of one CTA."""

    def __init__(self, program: Program, steps: Mapping[str, list[Event]]) -> None:
        self.steps = steps
        self.threads = {r.name: r.warps * 32 for r in program.role_decls()}
        rings: tuple[Pipeline, ...] = program.find(Pipeline)
        self.stages = {p.name: p.stages for p in rings}
        self.committed: set[tuple[str, int]] = set()
        self.released: set[tuple[str, int]] = set()
        everyone = sum(self.threads.values())
        self.barriers = {"cta": _Barrier(everyone), "cluster": _Barrier(everyone)}
        for b in program.find(NamedBarrier):
            self.barriers[b.name] = _Barrier(b.threads)
        self.waiting: Counter[tuple[str, str]] = Counter()

    def run(self) -> tuple[Blocked, ...]:
        """The roles that are blocked in the end; none if all of them finish."""
        at = dict.fromkeys(self.steps, 0)
        moved = True
        while moved:
            moved = False
            for role, steps in self.steps.items():
                while at[role] < len(steps) and self._passes(role, steps[at[role]], at[role]):
                    at[role] += 1
                    moved = True
        return tuple(
            Blocked(role, steps[at[role]])
            for role, steps in self.steps.items()
            if at[role] < len(steps)
        )

    def _passes(self, role: str, event: Event, position: int) -> bool:
        """Whether a step can be taken now; takes it if so."""
        key = (event.what, event.step)
        if event.kind == "acquire":
            stages = self.stages[event.what]
            return event.step < stages or (event.what, event.step - stages) in self.released
        if event.kind == "wait":
            return key in self.committed
        if event.kind == "commit":
            self.committed.add(key)
        elif event.kind == "release":
            self.released.add(key)
        else:
            return self._barrier(role, event, position)
        return True

    def _barrier(self, role: str, event: Event, position: int) -> bool:
        """Arrive once at a barrier; a ``sync`` passes when the generation it joined opens."""
        barrier = self.barriers[event.what]
        if barrier.passed.get(role) != position:
            barrier.passed[role] = position
            self.waiting[role, event.what] = barrier.opened
            barrier.arrived += self.threads[role]
            while barrier.arrived >= barrier.threads:
                barrier.arrived -= barrier.threads
                barrier.opened += 1
        return event.kind == "arrive" or barrier.opened > self.waiting[role, event.what]
