"""The shortest sequence of events that leads to a finding, and the words for events."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from cake.diag.model import Fact
from cake.verify.phase import events as ev
from cake.verify.phase.clocks import ActorState, Clock
from cake.verify.phase.events import Event, Key, System
from cake.verify.phase.outcome import Logged, Moment

MAX_TRACE = 40
"""Events of a trace; of a longer one the last are kept."""


def block_name(key: Key) -> str:
    """``X[2]`` for stage 2 of X, with the CTA if it is not the first."""
    space, cta, name, stage = key
    if space == "global":
        return name
    return f"{name}[{stage}]" + (f" of CTA {cta}" if cta > 0 else "")


def described(event: Event, system: System) -> tuple[str, str]:
    """What an event does, and to what."""
    if isinstance(event, ev.Touch | ev.Issue):
        doing = event.engine if isinstance(event, ev.Issue) else ""
        parts = dict.fromkeys(
            f"{a.action} {block_name(a.key)}" for a in event.accesses if a.key[0] != "global"
        ) or dict.fromkeys(f"{a.action} {block_name(a.key)}" for a in event.accesses)
        return (doing or "access", ", ".join(parts))
    if isinstance(event, ev.Copy):
        to = [block_name(a.key) for landing in event.landings for a in landing.writes]
        return ("copy", ", ".join(to))
    if isinstance(event, ev.Drain):
        left = "all" if event.pending is None else f"all but {event.pending} groups"
        return ("wait for", f"{event.engine}: {left}")
    words: dict[type[Event], str] = {
        ev.Wait: "wait",
        ev.Arrive: "arrive",
        ev.ArriveWhenDone: "arrive when done",
        ev.Expect: "expect bytes",
        ev.Meet: "arrive",
        ev.Await: "pass",
    }
    if isinstance(event, ev.Wait | ev.Arrive | ev.ArriveWhenDone | ev.Expect | ev.Meet | ev.Await):
        return (words[type(event)], str(system.barriers[event.barrier]))
    return ("fence for the async proxy" if isinstance(event, ev.Fence) else "use", "")


def entry(
    state: ActorState, event: Event, phase: int, system: System, *, stuck: bool = False
) -> Fact:
    """An event of a trace: actor, action, object, phase, line."""
    action, what = described(event, system)
    action = f"{action} for ever" if stuck else action
    return [str(state.actor), action, what, phase, event.place.line]


def past(
    system: System, log: list[Logged], moment: Moment, keep: Callable[[Logged], bool]
) -> list[Fact]:
    """Events that come before a moment for certain, in order, as far as ``keep`` says.

    Nothing else has to happen to get there, so this is the shortest trace of those actors.
    """
    found = [
        entry(e.state, e.event, e.phase, system)
        for e in log[: moment.logged]
        if keep(e) and moment.clock[e.state.index] >= e.now
    ]
    return found[-MAX_TRACE:]


def touching(states: Iterable[ActorState], key: Key | None) -> Callable[[Logged], bool]:
    """Events of some actors: their signals and waits, and their accesses to one block."""
    who = {s.index for s in states}

    def keep(e: Logged) -> bool:
        if e.state.index not in who or isinstance(e.event, ev.Use):
            return False
        if isinstance(e.event, ev.Touch | ev.Issue):
            return any(a.key == key for a in e.event.accesses)
        if isinstance(e.event, ev.Copy):
            writes = [a for landing in e.event.landings for a in landing.writes]
            return key is None or any(a.key == key for a in writes)
        return True

    return keep


def last_signal(log: list[Logged], sender: ActorState, clock: Clock) -> Logged | None:
    """The last signal of an actor that has reached a moment."""
    signals = ev.Arrive | ev.ArriveWhenDone | ev.Meet
    sent = (e for e in reversed(log) if e.state is sender and isinstance(e.event, signals))
    return next((e for e in sent if e.now <= clock[sender.index]), None)


def last_wait(log: list[Logged], state: ActorState) -> Logged | None:
    """The last wait of an actor that is over."""
    return next(
        (e for e in reversed(log) if e.state is state and isinstance(e.event, ev.Wait | ev.Await)),
        None,
    )


def late_announcement(log: list[Logged], state: ActorState, copy: Event) -> Logged | None:
    """The announcement of a copy's bytes, if its actor arrived just before instead of after it.

    That arrival completed the phase before, so that the bytes count for the next one.
    """
    assert isinstance(copy, ev.Copy)
    barriers = {landing.barrier for landing in copy.landings}
    announced: Logged | None = None
    started = False
    for e in (e for e in reversed(log) if e.state is state):
        started = started or e.event is copy
        if isinstance(e.event, ev.Wait | ev.Await):
            return None
        if started and isinstance(e.event, ev.Expect) and e.event.barrier in barriers:
            announced = announced or e
        elif announced and isinstance(e.event, ev.Arrive) and e.event.barrier in barriers:
            return announced if e.phase < announced.phase else None
    return None
