"""Vector clocks: what has happened for certain, and what is visible, where an actor stands.

A clock is one int array with two parts.

*Causal* components tell what has happened: how far each actor has come, and how many phases each
barrier has completed. They travel with every signal.

*Visible* components tell what may be touched: the ordinary accesses of each actor, those of them
that it has fenced for the async proxy, the copies that each mbarrier has counted, the work that
each engine has completed. They travel with signals that release and acquire memory, which arrivals
of threads and barriers do; a completion that hardware signals publishes its own work only.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from cake.verify.phase.events import Actor, Engine, Issue, System

Clock = Any
"""int64 array (components,)."""


@dataclass(slots=True)
class Queue:
    """Work of one actor on one engine, in order of issue; numbers count from 1.

    ``reads`` and ``writes`` are the components that tell how much of it has read its sources and
    is complete; ``fenced`` how much of it is fenced. ``groups``: work issued up to each commit.
    """

    reads: int
    writes: int
    fenced: int
    issued: int = 0
    groups: list[int] = field(default_factory=list)

    def up_to(self, pending: int | None) -> int:
        """How much work is complete when all but ``pending`` groups are."""
        if pending is None:
            return self.issued
        return self.groups[-1 - pending] if pending < len(self.groups) else 0


@dataclass(slots=True)
class ActorState:
    """An actor under way. ``now`` numbers the stretches between its signals."""

    index: int
    actor: Actor
    clock: Clock
    time: int
    fenced: int
    queues: dict[Engine, Queue]
    position: int = 0
    now: int = 1
    joined: dict[int, int] = field(default_factory=dict)
    """Generation of each hardware barrier in which the actor arrived last."""
    owned: dict[str, tuple[int, int, Issue]] = field(default_factory=dict)
    """Registers that an engine holds: component and value that tell when it is done."""

    def tick(self) -> None:
        """What follows is later than what a signal just told."""
        self.now += 1
        self.clock[self.index] = self.clock[self.time] = self.now

    @property
    def done(self) -> bool:
        return self.position >= len(self.actor.events)


class Components:
    """Numbers the components of the clocks of one system."""

    def __init__(self, system: System) -> None:
        self.actors = len(system.actors)
        self.barriers = len(system.barriers)
        self.causal = self.actors + self.barriers
        self.size = 2 * self.causal + self.actors
        self.states = [self._state(i, a) for i, a in enumerate(system.actors)]
        for state in self.states:
            state.clock = self.zero()
            state.clock[state.index] = state.clock[state.time] = state.now

    def _state(self, index: int, actor: Actor) -> ActorState:
        return ActorState(
            index=index,
            actor=actor,
            clock=None,
            time=self.causal + index,
            fenced=self.causal + self.actors + self.barriers + index,
            queues={e: self._queue(e) for e in sorted(_engines(actor))},
        )

    def _queue(self, engine: Engine) -> Queue:
        first = self.size
        distinct = engine == "bulk_group"
        self.size += 3 if distinct else 2
        return Queue(reads=first, writes=first + distinct, fenced=self.size - 1)

    def zero(self) -> Clock:
        return np.zeros(self.size, np.int64)

    def phases(self, barrier: int) -> int:
        """Causal: phases that a barrier has completed."""
        return self.actors + barrier

    def landed(self, barrier: int) -> int:
        """Visible: phases of an mbarrier whose copies are complete."""
        return self.causal + self.actors + barrier


def _engines(actor: Actor) -> set[Engine]:
    return {e.engine for e in actor.events if isinstance(e, Issue)} | {
        e.engine for e in actor.events if hasattr(e, "engine")
    }
