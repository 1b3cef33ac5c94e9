"""One run of a system: every actor to its end, with clocks, phases and accesses.

If every generation of every barrier is certain (:mod:`cake.verify.phase.barriers`), which actors
wait for ever and which accesses are unordered does not depend on who goes first. So this run goes
on with whoever can, counts the bytes of copies when they are issued, and leaves it to the clocks to
tell when they land.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from cake.verify.phase import events as ev
from cake.verify.phase.barriers import HardwareBarrier, MBarrier, Uncertain, Waiting
from cake.verify.phase.clocks import ActorState, Clock, Components
from cake.verify.phase.events import Event, Key, System
from cake.verify.phase.memory import Memory, Record
from cake.verify.phase.outcome import Blocked, Doubtful, Held, Logged, Outcome
from cake.verify.phase.steady import Marked, Steadiness

Step = Callable[["Run", ActorState, Any], bool]


class Run:
    """Executes a system once."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.components = Components(system)
        self.states = self.components.states
        everyone = sum(a.threads for a in system.actors)
        self.barriers: list[MBarrier | HardwareBarrier] = [
            HardwareBarrier(i, b, self.components, everyone if b.kind == "cluster" else b.count)
            if b.kind in ("hardware", "cluster")
            else MBarrier(i, b, self.components)
            for i, b in enumerate(system.barriers)
        ]
        self.cluster = [b for b in self.barriers if b.barrier.kind == "cluster"]
        self.memory = Memory()
        self.raced: set[tuple[object, ...]] = set()
        """Races of one kind between two places are reported once."""
        self.asynchronous: list[Record] = []
        self.marked: list[Marked] = []
        self.waits: dict[int, Waiting] = {}
        self.handed: dict[tuple[Key, ...], int] = {}
        """Phase in which each ring's slot was last handed to its producers."""
        self.sleeping: dict[int, list[ActorState]] = {}
        self.outcome = Outcome(system, barriers=self.barriers)
        self.ready = deque(self.states)

    def execute(self) -> Outcome:
        """Run to the end, or to the first event whose phase is uncertain."""
        while self.ready:
            state = self.ready.popleft()
            try:
                self._advance(state)
            except Uncertain as cause:
                event = state.actor.events[min(state.position, len(state.actor.events) - 1)]
                self.outcome.doubt = Doubtful(state, event, cause, self.outcome.moment(state))
                return self.outcome
        self._end()
        return self.outcome

    def _advance(self, state: ActorState) -> None:
        """Let an actor go on until it ends or waits."""
        events = state.actor.events
        while state.position < len(events):
            event = events[state.position]
            if not _STEPS[type(event)](self, state, event):
                number = event.barrier  # type: ignore[attr-defined]
                self.sleeping.setdefault(number, []).append(state)
                return
            state.position += 1
        for barrier in self.cluster:
            assert isinstance(barrier, HardwareBarrier)
            if barrier.leave(state, state.actor.threads):
                self._wake(barrier.number)

    def _wake(self, barrier: int) -> None:
        self.ready.extend(self.sleeping.pop(barrier, ()))

    def _log(self, state: ActorState, event: Event, phase: int) -> None:
        self.outcome.log.append(Logged(state, event, state.now, phase))

    def _mbarrier(self, number: int) -> MBarrier:
        barrier = self.barriers[number]
        assert isinstance(barrier, MBarrier)
        return barrier

    # -- mbarriers ---------------------------------------------------------------------------------

    def wait(self, state: ActorState, event: ev.Wait) -> bool:
        barrier = self._mbarrier(event.barrier)
        wait = self.waits.get(state.index)
        if wait is None:
            wait = self.waits[state.index] = barrier.begin_wait(state, event, event.parity)
        if not barrier.end_wait(wait):
            return False
        del self.waits[state.index]
        guards = barrier.barrier.guards
        if guards and self.handed.get(guards) != wait.target:
            # The first of the producers to get here finds the slot empty.
            self.handed[guards] = wait.target
            for block in guards:
                self.memory.forget(block)
        self._log(state, event, wait.target - 1)
        return True

    def arrive(self, state: ActorState, event: ev.Arrive) -> bool:
        barrier = self._mbarrier(event.barrier)
        self._log(state, event, barrier.phase)
        if barrier.arrive(state, event, event.count, event.tx):
            self._wake(event.barrier)
        state.tick()
        return True

    def arrive_when_done(self, state: ActorState, event: ev.ArriveWhenDone) -> bool:
        barrier = self._mbarrier(event.barrier)
        self._log(state, event, barrier.phase)
        queue = state.queues[event.engine]
        count, done = event.count, queue.issued
        if barrier.arrive_when_done(state, event, count, queue.writes, done):
            self._wake(event.barrier)
        state.tick()
        return True

    def expect(self, state: ActorState, event: ev.Expect) -> bool:
        barrier = self._mbarrier(event.barrier)
        self._log(state, event, barrier.phase)
        if barrier.expect(state, event, event.tx):
            self._wake(event.barrier)
        return True

    def copy(self, state: ActorState, event: ev.Copy) -> bool:
        for landing in event.landings:
            barrier = self._mbarrier(landing.barrier)
            self._log(state, event, barrier.phase)
            reads = event.reads if landing is event.landings[0] else ()
            for access in (*landing.writes, *reads):
                record = Record(
                    state,
                    event,
                    access,
                    component=barrier.landed,
                    value=barrier.phase + 1,
                    fenced=None,
                    now=state.now,
                    happened=barrier.phases,
                )
                self._access(state, record)
                if access.action == "write":
                    self.asynchronous.append(record)
            if barrier.land(state, event, landing.tx):
                self._wake(landing.barrier)
        state.tick()
        return True

    # -- hardware barriers -------------------------------------------------------------------------

    def meet(self, state: ActorState, event: ev.Meet) -> bool:
        barrier = self.barriers[event.barrier]
        assert isinstance(barrier, HardwareBarrier)
        self._log(state, event, barrier.phase)
        if barrier.arrive(state, event, event.threads):
            self._wake(event.barrier)
        state.tick()
        return True

    def pass_by(self, state: ActorState, event: ev.Await) -> bool:
        barrier = self.barriers[event.barrier]
        assert isinstance(barrier, HardwareBarrier)
        if not barrier.pass_by(state):
            return False
        self._log(state, event, state.joined.get(event.barrier, 0))
        return True

    # -- engines -----------------------------------------------------------------------------------

    def issue(self, state: ActorState, event: ev.Issue) -> bool:
        queue = state.queues[event.engine]
        queue.issued += 1
        self._log(state, event, queue.issued)
        for access in event.accesses:
            component = queue.reads if access.action == "read" else queue.writes
            fenced = queue.fenced if access.proxy == "generic" else None
            inorder = (state.index, event.engine) if event.engine == "tcgen05" else None
            record = Record(
                state, event, access, component, queue.issued, fenced, state.now, inorder=inorder
            )
            self._access(state, record)
            if access.key[0] == "smem":
                self.asynchronous.append(record)
        for name in (event.held, event.source):
            if name is not None:
                state.owned[name] = (queue.writes, queue.issued, event)
        return True

    def commit(self, state: ActorState, event: ev.Commit) -> bool:
        queue = state.queues[event.engine]
        queue.groups.append(queue.issued)
        return True

    def drain(self, state: ActorState, event: ev.Drain) -> bool:
        queue = state.queues[event.engine]
        done = queue.up_to(event.pending)
        for component in {queue.reads} if event.reads_only else {queue.reads, queue.writes}:
            state.clock[component] = max(state.clock[component], done)
        self._log(state, event, done)
        return True

    def fence(self, state: ActorState, event: ev.Fence) -> bool:
        state.clock[state.fenced] = state.now
        for queue in state.queues.values():
            state.clock[queue.fenced] = state.clock[queue.writes]
        self._log(state, event, 0)
        state.tick()
        return True

    # -- accesses ----------------------------------------------------------------------------------

    def touch(self, state: ActorState, event: ev.Touch) -> bool:
        self._log(state, event, 0)
        for access in event.accesses:
            fenced = state.fenced if access.proxy == "generic" else None
            record = Record(state, event, access, state.time, state.now, fenced, state.now)
            self._access(state, record)
        return True

    def _access(self, state: ActorState, record: Record) -> None:
        if self.memory.unwritten(record.access):
            found = (record, self.outcome.moment(state))
            self.outcome.unwritten.setdefault(record.event.place, found)
        for race in self.memory.access(record, state.clock):
            places = (race.old.event.place, race.new.event.place)
            key = (race.kind, race.certain, record.access.key[:3], *places)
            if key not in self.raced:
                self.raced.add(key)
                self.outcome.races.append((race, self.outcome.moment(state)))

    def use(self, state: ActorState, event: ev.Use) -> bool:
        for name in (*event.reads, *event.writes):
            owned = state.owned.get(name)
            if owned is None:
                continue
            component, value, by = owned
            if state.clock[component] >= value:
                del state.owned[name]
            elif by.held == name or name in event.writes:
                moment = self.outcome.moment(state)
                self.outcome.held.append(Held(state, event, name, by, moment))
                del state.owned[name]
        return True

    def mark(self, state: ActorState, event: ev.Mark) -> bool:
        issued = tuple(
            (component, queue.issued)
            for queue in state.queues.values()
            for component in (queue.reads, queue.writes, queue.fenced)
        )
        self.marked.append(Marked(state.index, event, state.clock.copy(), issued))
        return True

    # -- the end -----------------------------------------------------------------------------------

    def _end(self) -> None:
        for state in self.states:
            if not state.done:
                event = state.actor.events[state.position]
                assert isinstance(event, ev.Wait | ev.Await)
                wait = self.waits.get(state.index)
                phase = state.joined.get(event.barrier, 0) if wait is None else wait.target - 1
                self.outcome.blocked.append(Blocked(state, event, phase))
        if self.outcome.blocked:
            return
        steadiness = Steadiness(self.system, self.components, self.marked)
        self.outcome.steady = steadiness.reached()
        seen: dict[int, Clock] = {}
        for state in self.states:
            rank = state.actor.cta
            seen[rank] = np.maximum(seen[rank], state.clock) if rank in seen else state.clock
        for record in self.asynchronous:
            if not record.complete(seen.get(record.access.key[1], self.components.zero())):
                self.outcome.unfinished.append(record)


_STEPS: dict[type[Event], Step] = {
    ev.Wait: Run.wait,
    ev.Arrive: Run.arrive,
    ev.ArriveWhenDone: Run.arrive_when_done,
    ev.Expect: Run.expect,
    ev.Copy: Run.copy,
    ev.Meet: Run.meet,
    ev.Await: Run.pass_by,
    ev.Issue: Run.issue,
    ev.Commit: Run.commit,
    ev.Drain: Run.drain,
    ev.Fence: Run.fence,
    ev.Touch: Run.touch,
    ev.Use: Run.use,
    ev.Mark: Run.mark,
}


def run(system: System) -> Outcome:
    """Execute a system once."""
    return Run(system).execute()
