"""mbarriers and hardware barriers with exact phases, and the rules that make phases certain.

One run decides about all interleavings if every generation of every barrier is certain: each
arrival and each byte counts for the same generation in every order, and each wait returns after the
same one. Both follow from order alone, and are checked where they could fail:

* what counts for a generation comes after the completion of the generation before;
* bytes are announced before, or with, some arrival of their generation;
* whoever waited for a generation has left before the next one completes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from cake.verify.phase.clocks import ActorState, Clock, Components
from cake.verify.phase.events import Barrier, Event

Doubt = Literal[
    "early-arrival", "too-many", "excess-bytes", "late-expect", "stale-wait", "lapped-wait"
]


class Uncertain(Exception):
    """A generation of a barrier depends on the order of events.

    ``other`` is the event of another actor that takes part, with that actor.
    """

    def __init__(
        self, doubt: Doubt, barrier: int, phase: int, other: tuple[ActorState, Event] | None
    ) -> None:
        super().__init__(doubt)
        self.doubt = doubt
        self.barrier = barrier
        self.phase = phase
        self.other = other


@dataclass(slots=True)
class Waiting:
    """A wait: it returns once ``target`` generations are complete; ``left`` is when it did.

    ``at_once``: the wait needs no generation but those it knows to be complete.
    """

    state: ActorState
    event: Event
    target: int
    at_once: bool
    left: int | None = None


class Generations:
    """What all barriers share: generations, and the clock of what counts for the present one.

    ``complete_at`` has for each complete generation what has happened by then, or None if hardware
    counted for it: then only a wait tells that it is complete.
    """

    def __init__(self, number: int, barrier: Barrier, components: Components) -> None:
        self.number = number
        self.barrier = barrier
        self.components = components
        self.phases = components.phases(number)
        self.phase = 0
        self.clock: Clock = components.zero()
        self.last: Clock = components.zero()
        self.complete_at: list[Clock | None] = []
        self.hardware = False
        """Hardware has counted for the present generation, not only threads."""
        self.by: list[tuple[ActorState, Event]] = []
        self.before: list[tuple[ActorState, Event]] = []
        """Who has counted for the present generation, and for the one before."""

    def known(self, state: ActorState) -> int:
        """How many generations are complete for certain where an actor stands."""
        found = first = int(state.clock[self.phases])
        happened = state.clock[: self.components.causal]
        while found < self.phase:
            end = self.complete_at[found]
            if end is None or not np.all(end <= happened):
                break
            found += 1
        if found > first:
            state.clock[self.phases] = found
        return found

    def enter(self, state: ActorState, event: Event) -> None:
        """An actor's event counts for the present generation."""
        if self.known(state) < self.phase:
            raise Uncertain("early-arrival", self.number, self.phase, self._culprit(state))
        self.by.append((state, event))

    def _culprit(self, state: ActorState) -> tuple[ActorState, Event] | None:
        """Someone of the last generation who may be later than ``state``."""
        return next(
            (x for x in self.before if x[0] is not state and self._after(x[0], state)), None
        )

    def _after(self, other: ActorState, state: ActorState) -> bool:
        return bool(self.last[other.index] > state.clock[other.index])

    def complete(self) -> None:
        """The present generation is complete; the next begins."""
        self.phase += 1
        causal = self.clock[: self.components.causal]
        self.complete_at.append(None if self.hardware else causal)
        self.hardware = False
        self.last, self.clock = self.clock, self.components.zero()
        self.before, self.by = self.by, []


class MBarrier(Generations):
    """An mbarrier. ``pending`` arrivals and ``tx`` bytes are missing in the present generation."""

    def __init__(self, number: int, barrier: Barrier, components: Components) -> None:
        super().__init__(number, barrier, components)
        self.landed = components.landed(number)
        self.pending = barrier.count
        self.tx = 0
        self.bytes = 0
        """Bytes announced in the present generation."""
        self.announced: list[tuple[ActorState, int, Event]] = []
        """Announcements that no arrival of the generation is known to follow."""
        self.waits: list[Waiting] = []

    def arrive(self, state: ActorState, event: Event, count: int, tx: int) -> bool:
        """Arrivals of a thread; True if the generation is complete."""
        self.enter(state, event)
        self.tx += tx
        self.bytes += tx
        np.maximum(self.clock, state.clock, out=self.clock)
        self.announced = [a for a in self.announced if state.clock[a[0].index] < a[1]]
        return self._arrived(count)

    def arrive_when_done(
        self, state: ActorState, event: Event, count: int, component: int, issued: int
    ) -> bool:
        """Arrivals of an engine, which publish its work and nothing else."""
        self.enter(state, event)
        self._join_causal(state)
        self.clock[component] = max(self.clock[component], issued)
        self.hardware = True
        return self._arrived(count)

    def _join_causal(self, state: ActorState) -> None:
        part = slice(0, self.components.causal)
        np.maximum(self.clock[part], state.clock[part], out=self.clock[part])

    def _arrived(self, count: int) -> bool:
        self.pending -= count
        if self.pending < 0:
            raise Uncertain("too-many", self.number, self.phase, self.by[0])
        return self._complete_if_due()

    def expect(self, state: ActorState, event: Event, tx: int) -> bool:
        """Announce bytes."""
        self.enter(state, event)
        self.tx += tx
        self.bytes += tx
        state.tick()
        self.announced.append((state, state.now, event))
        return self._complete_if_due()

    def land(self, state: ActorState, event: Event, tx: int) -> bool:
        """A copy will bring ``tx`` bytes; counted now, since only their sum decides."""
        self.enter(state, event)
        self._join_causal(state)
        self.hardware = True
        self.tx -= tx
        return self._complete_if_due()

    def _complete_if_due(self) -> bool:
        if self.pending or self.tx > 0:
            return False
        if self.tx < 0:
            raise Uncertain("excess-bytes", self.number, self.phase, self.by[-1])
        if self.announced:
            state, _, event = self.announced[0]
            raise Uncertain("late-expect", self.number, self.phase, (state, event))
        self._leave_check()
        self.complete()
        self.bytes = 0
        self.pending = self.barrier.count
        return True

    def _leave_check(self) -> None:
        """Everyone who waited for the last generation must have left before this one completes."""
        kept = []
        for w in self.waits:
            if w.target > self.phase:
                kept.append(w)
            elif w.left is None or self.clock[w.state.index] < w.left:
                doubt: Doubt = "stale-wait" if w.at_once else "lapped-wait"
                raise Uncertain(doubt, self.number, self.phase, (w.state, w.event))
        self.waits = kept

    def begin_wait(self, state: ActorState, event: Event, parity: int) -> Waiting:
        """A wait begins. Its target follows from what is known, not from the order of this run."""
        known = self.known(state)
        at_once = known & 1 != parity
        wait = Waiting(state, event, known if at_once else known + 1, at_once)
        self.waits.append(wait)
        return wait

    def end_wait(self, wait: Waiting) -> bool:
        """Whether a wait may return; acquires what the generation released if so."""
        if self.phase < wait.target:
            return False
        if self.phase > wait.target:
            doubt: Doubt = "stale-wait" if wait.at_once else "lapped-wait"
            raise Uncertain(doubt, self.number, wait.target, self.before[-1])
        state = wait.state
        np.maximum(state.clock, self.last, out=state.clock)
        for component in (self.phases, self.landed):
            state.clock[component] = max(state.clock[component], self.phase)
        state.tick()
        wait.left = state.now
        return True


class HardwareBarrier(Generations):
    """A named, CTA, role, unit or cluster barrier. ``threads`` make a generation."""

    def __init__(self, number: int, barrier: Barrier, components: Components, threads: int) -> None:
        super().__init__(number, barrier, components)
        self.threads = threads
        self.arrived = 0
        self.leaving = 0
        """Threads that have ended, but are counted in the present generation."""
        self.clocks: dict[int, Clock] = {}

    def arrive(self, state: ActorState, event: Event, threads: int) -> bool:
        """Threads arrive; True if the generation is complete."""
        self.enter(state, event)
        again = state.joined.get(self.number) == self.phase
        if again and self.barrier.kind == "cluster":
            raise Uncertain("too-many", self.number, self.phase, self.by[0])
        state.joined[self.number] = self.phase
        self.arrived += threads
        if self.arrived > self.threads:
            raise Uncertain("too-many", self.number, self.phase, self.by[0])
        np.maximum(self.clock, state.clock, out=self.clock)
        return self._complete_if_due()

    def leave(self, state: ActorState, threads: int) -> bool:
        """Threads end: a cluster barrier no longer counts them."""
        if state.joined.get(self.number) == self.phase:
            self.leaving += threads
            return False
        self.threads -= threads
        return bool(self.by) and self._complete_if_due()

    def _complete_if_due(self) -> bool:
        if self.arrived < self.threads:
            return False
        self.complete()
        self.clocks[self.phase] = self.last
        self.threads -= self.leaving
        self.arrived = self.leaving = 0
        return True

    def pass_by(self, state: ActorState) -> bool:
        """Whether the generation in which an actor arrived is complete; acquires it if so."""
        target = state.joined.get(self.number, -1) + 1
        if self.phase < target or target not in self.clocks:
            return False
        np.maximum(state.clock, self.clocks[target], out=state.clock)
        state.clock[self.phases] = max(state.clock[self.phases], target)
        return True
