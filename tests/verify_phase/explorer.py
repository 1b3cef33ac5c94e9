"""All interleavings of a small system: a second opinion on the phase simulation.

States are explored one step at a time, with nothing of the simulation but the events: actors step,
copies land and engines complete whenever they may. No clocks: two accesses race if one state lets
both happen, or if one of them is still in flight when the other happens.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import product
from typing import TypeVar

from cake.verify.phase import events as ev
from cake.verify.phase.events import Access, Event, System

MAX_STATES = 2_500


@dataclass(frozen=True, slots=True)
class Counter:
    """An mbarrier (missing arrivals and bytes) or a hardware barrier (threads that arrived)."""

    phase: int = 0
    missing: int = 0
    tx: int = 0


@dataclass(frozen=True, slots=True)
class Flight:
    """Something in flight: half a landing, an arrival of an engine, or a queued operation.

    ``number`` counts the operations of an actor's engine; for landings it tells the halves apart.
    """

    actor: int
    event: int
    landing: int = -1
    engine: str = ""
    number: int = -1


@dataclass(frozen=True, slots=True)
class State:
    at: tuple[int, ...]
    counters: tuple[Counter, ...]
    flights: frozenset[Flight]
    issued: tuple[tuple[tuple[int, str], tuple[int, ...]], ...]
    """For each actor's engine: operations issued, then operations up to each commit."""
    joined: tuple[tuple[tuple[int, int], int], ...]


@dataclass(slots=True)
class Explored:
    """What can happen: phases that events were in, races, ends, and overflowing barriers."""

    phases: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    races: set[tuple[str, ...]] = field(default_factory=set)
    ends: set[tuple[int, ...]] = field(default_factory=set)
    overflow: bool = False
    states: int = 0

    @property
    def certain(self) -> bool:
        """Whether every event is in the same phase in all interleavings."""
        return not self.overflow and all(len(found) == 1 for found in self.phases.values())


class TooMany(Exception):
    """The system is not small."""


class Explorer:
    """Explores one system."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.found = Explored()

    def explore(self) -> Explored:
        start = State(
            at=(0,) * len(self.system.actors),
            counters=tuple(
                Counter(missing=0 if b.kind in ("hardware", "cluster") else b.count)
                for b in self.system.barriers
            ),
            flights=frozenset(),
            issued=(),
            joined=(),
        )
        seen, stack = {start}, [start]
        while stack:
            state = stack.pop()
            self._races(state)
            following = list(self._following(state))
            if not following:
                self.found.ends.add(state.at)
            for new in following:
                if new not in seen:
                    seen.add(new)
                    stack.append(new)
            if len(seen) > MAX_STATES:
                raise TooMany
        self.found.states = len(seen)
        return self.found

    def _event(self, state: State, actor: int) -> Event | None:
        events = self.system.actors[actor].events
        at = state.at[actor]
        return events[at] if at < len(events) else None

    # -- races -------------------------------------------------------------------------------------

    def _races(self, state: State) -> None:
        """Accesses that could happen now, against each other and against what is in flight."""
        now = []
        for actor in range(len(self.system.actors)):
            event = self._event(state, actor)
            if event is not None:
                now.append((actor, event, _accesses(event)))
        for i, (_, event, accesses) in enumerate(now):
            for _, event2, accesses2 in now[i + 1 :]:
                self._compare(event, accesses, event2, accesses2)
            for flight in state.flights:
                old = self.system.actors[flight.actor].events[flight.event]
                if old is not event:
                    self._compare(event, accesses, old, _in_flight(old, flight))

    def _compare(
        self, a: Event, first: tuple[Access, ...], b: Event, second: tuple[Access, ...]
    ) -> None:
        for x in first:
            for y in second:
                apart = x.key != y.key or x.instance == y.instance
                if not apart and "write" in (x.action, y.action):
                    a_cells, b_cells = x.region.cells, y.region.cells
                    shared = isinstance(a_cells, int) and isinstance(b_cells, int)
                    if shared and a_cells & b_cells:  # type: ignore[operator]
                        self.found.races.add(tuple(sorted((str(a.place), str(b.place)))))

    # -- steps -------------------------------------------------------------------------------------

    def _following(self, state: State) -> Iterator[State]:
        for actor in range(len(self.system.actors)):
            event = self._event(state, actor)
            if event is not None:
                yield from self._step(state, actor, event)
        for flight in state.flights:
            yield from self._complete(state, flight)

    def _step(self, state: State, actor: int, event: Event) -> Iterator[State]:
        place = (actor, state.at[actor])
        moved = replace(state, at=_put(state.at, actor, state.at[actor] + 1))
        if isinstance(event, ev.Wait):
            phase = state.counters[event.barrier].phase
            if phase & 1 != event.parity:
                self.found.phases[place].add(phase - 1)
                yield moved
        elif isinstance(event, ev.Arrive):
            yield from self._count(moved, place, event.barrier, event.count, event.tx)
        elif isinstance(event, ev.Expect):
            yield from self._count(moved, place, event.barrier, 0, event.tx)
        elif isinstance(event, ev.Copy):
            halves = product(range(len(event.landings)), (0, 1))
            flights = {Flight(*place, landing=i, number=half) for i, half in halves}
            yield replace(moved, flights=moved.flights | flights)
        elif isinstance(event, ev.Meet):
            yield from self._meet(moved, place, event)
        elif isinstance(event, ev.Await):
            target = dict(state.joined).get((actor, event.barrier), -1)
            if state.counters[event.barrier].phase > target:
                yield moved
        else:
            yield from self._engine(moved, place, event)

    def _engine(self, state: State, place: tuple[int, int], event: Event) -> Iterator[State]:
        queues = dict(state.issued)
        if isinstance(event, ev.Issue | ev.ArriveWhenDone):
            key = (place[0], event.engine)
            issued, *groups = queues.get(key, (0,))
            if isinstance(event, ev.Issue):
                issued += 1
                queues[key] = (issued, *groups)
            flight = Flight(*place, engine=event.engine, number=issued)
            state = replace(state, flights=state.flights | {flight})
        elif isinstance(event, ev.Commit):
            key = (place[0], event.engine)
            issued, *groups = queues.get(key, (0,))
            queues[key] = (issued, *groups, issued)
        elif isinstance(event, ev.Drain):
            issued, *groups = queues.get((place[0], event.engine), (0,))
            pending = event.pending
            done = (
                issued
                if pending is None
                else ([0, *groups][: len(groups) + 1 - pending] or [0])[-1]
            )
            state = self._finished(state, place[0], event.engine, done)
        yield replace(state, issued=tuple(sorted(queues.items())))

    def _finished(self, state: State, actor: int, engine: str, number: int) -> State:
        """Operations of a queue up to a number are complete."""
        left = (
            f
            for f in state.flights
            if not (
                (f.actor, f.engine) == (actor, engine)
                and f.number <= number
                and isinstance(self.system.actors[actor].events[f.event], ev.Issue)
            )
        )
        return replace(state, flights=frozenset(left))

    def _complete(self, state: State, flight: Flight) -> Iterator[State]:
        """A landing or an arrival that engines make. Operations wait until somebody drains them."""
        event = self.system.actors[flight.actor].events[flight.event]
        place = (flight.actor, flight.event)
        rest = replace(state, flights=state.flights - {flight})
        if isinstance(event, ev.Copy):
            landing = event.landings[flight.landing]
            yield from self._count(rest, place, landing.barrier, 0, -landing.tx // 2)
        elif isinstance(event, ev.ArriveWhenDone):
            rest = self._finished(rest, flight.actor, flight.engine, flight.number)
            yield from self._count(rest, place, event.barrier, event.count, 0)

    # -- barriers ----------------------------------------------------------------------------------

    def _count(
        self, state: State, place: tuple[int, int], barrier: int, count: int, tx: int
    ) -> Iterator[State]:
        old = state.counters[barrier]
        self.found.phases[place].add(old.phase)
        new = replace(old, missing=old.missing - count, tx=old.tx + tx)
        if new.missing < 0:
            self.found.overflow = True
            return
        if not new.missing and not new.tx:
            new = Counter(old.phase + 1, self.system.barriers[barrier].count)
        yield replace(state, counters=_put(state.counters, barrier, new))

    def _meet(self, state: State, place: tuple[int, int], event: ev.Meet) -> Iterator[State]:
        old = state.counters[event.barrier]
        self.found.phases[place].add(old.phase)
        arrived = old.missing + event.threads
        limit = self._threads(event.barrier)
        if arrived > limit:
            self.found.overflow = True
            return
        new = Counter(old.phase + 1) if arrived == limit else replace(old, missing=arrived)
        joined = {**dict(state.joined), (place[0], event.barrier): old.phase}
        yield replace(
            state,
            counters=_put(state.counters, event.barrier, new),
            joined=tuple(sorted(joined.items())),
        )

    def _threads(self, barrier: int) -> int:
        """Threads of a generation; all take part in the cluster's barriers of these systems."""
        if self.system.barriers[barrier].kind == "cluster":
            return sum(a.threads for a in self.system.actors)
        return self.system.barriers[barrier].count


T = TypeVar("T")


def _put(values: tuple[T, ...], index: int, value: T) -> tuple[T, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _accesses(event: Event) -> tuple[Access, ...]:
    if isinstance(event, ev.Touch | ev.Issue):
        return event.accesses
    if isinstance(event, ev.Copy):
        return tuple(a for landing in event.landings for a in landing.writes)
    return ()


def _in_flight(event: Event, flight: Flight) -> tuple[Access, ...]:
    """What of an event's accesses is not complete."""
    if isinstance(event, ev.Copy):
        return event.landings[flight.landing].writes
    return event.accesses if isinstance(event, ev.Issue) else ()
