"""What runs find about phases, put into words: uncertain generations, and waits for ever."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cake.diag import Code, Span
from cake.verify.phase import codes
from cake.verify.phase import events as ev
from cake.verify.phase.barriers import Doubt, HardwareBarrier, MBarrier
from cake.verify.phase.clocks import ActorState
from cake.verify.phase.events import Event
from cake.verify.phase.findings import Finding
from cake.verify.phase.outcome import Blocked, Doubtful, Logged, Moment, Outcome
from cake.verify.phase.trace import last_wait

_CODES: dict[Doubt, Code] = {
    "early-arrival": codes.OUT_OF_PHASE,
    "too-many": codes.TOO_MANY,
    "excess-bytes": codes.EXCESS_BYTES,
    "late-expect": codes.ANNOUNCED_LATE,
    "stale-wait": codes.STALE_WAIT,
    "lapped-wait": codes.LAPPED_WAIT,
}

_HELPS: dict[Doubt, str] = {
    "early-arrival": "wait for the phase before, or for what follows from it, then arrive",
    "too-many": "the count is the number of warps that arrive, times their counts",
    "excess-bytes": "announce the bytes of all copies that complete in the phase",
    "late-expect": "expect_tx, then the copies, then arrive, in one thread",
    "stale-wait": "count the uses of the barrier: slot n % S, parity n // S % 2",
    "lapped-wait": "let every waiting warp arrive before the slot is handed back",
}


def uncertain(outcome: Outcome, doubt: Doubtful) -> Finding:
    """A generation that depends on the order of events."""
    cause, state, event = doubt.cause, doubt.state, doubt.event
    barrier = outcome.barriers[cause.barrier]
    hardware = isinstance(barrier, HardwareBarrier)
    message, said = _doubt_words(doubt, barrier)
    other = cause.other
    if cause.doubt == "stale-wait" and other is not None and isinstance(other[1], ev.Wait):
        # The wait is at fault, not what completes the next phase.
        (state, event), other = other, (state, event)
    if hardware and cause.doubt == "early-arrival":
        twice = _twice(barrier.before)
        if twice is not None:
            other, (state, event) = (state, event), twice
            message = f"{state.actor} reaches {barrier.barrier} twice in phase {cause.phase - 1}"
            said = "then counts for the next phase"
    if other is None and barrier.before:
        other, said = barrier.before[-1], f"counts for phase {cause.phase - 1} here"
    others = [] if other is None else [other]
    related = [(e.place, f"{who.actor} {said}") for who, e in others]
    waited = last_wait(outcome.log, state) if cause.doubt == "early-arrival" else None
    if waited is not None:
        related.append((waited.event.place, f"what {state.actor} last waited for{_of(waited)}"))
    return Finding(
        code=codes.MIXED_GENERATIONS if hardware else _CODES[cause.doubt],
        message=message,
        place=event.place,
        states=(state, *(who for who, _ in others)),
        moment=_joined(outcome, [doubt.state, state, *(who for who, _ in others)]),
        related=tuple(related),
        facts={
            "barrier": str(barrier.barrier),
            "slot": barrier.barrier.slot,
            "phase": cause.phase,
            "count": barrier.barrier.count,
        },
        helps=(_HELPS[cause.doubt],),
    )


def _twice(arrivals: list[tuple[ActorState, Event]]) -> tuple[ActorState, Event] | None:
    """The second arrival of an actor in one generation."""
    seen: set[int] = set()
    for state, event in arrivals:
        if state.index in seen:
            return state, event
        seen.add(state.index)
    return None


def _of(waited: Logged) -> str:
    if isinstance(waited.event, ev.Await) or waited.phase >= 0:
        return f": phase {waited.phase}"
    return ", which passed at once: nothing was complete yet"


def _doubt_words(doubt: Doubtful, barrier: MBarrier | HardwareBarrier) -> tuple[str, str]:
    """The message, and what the other actor does."""
    who, name, phase = str(doubt.state.actor), str(barrier.barrier), doubt.cause.phase
    match doubt.cause.doubt:
        case "early-arrival":
            return (
                f"{who} reaches {name} for phase {phase}, but nothing orders it after the end of"
                f" phase {phase - 1}: it may count for that one",
                f"counts for phase {phase - 1} here and may come later",
            )
        case "too-many":
            unit = "threads" if isinstance(barrier, HardwareBarrier) else "arrivals"
            return (
                f"{who} arrives at {name} in phase {phase} beyond the {barrier.barrier.count}"
                f" {unit} it counts",
                "arrives in this phase here",
            )
        case "excess-bytes":
            assert isinstance(barrier, MBarrier)
            return (
                f"copies bring {-barrier.tx} bytes more to phase {phase} of {name} than the"
                f" {barrier.bytes} announced",
                "takes part in this phase here",
            )
        case "late-expect":
            return (
                f"phase {phase} of {name} may be complete before its bytes are announced",
                "makes the arrival, or the announcement, that comes in the wrong order",
            )
        case "stale-wait":
            past = f"the parity of phase {phase - 1}" if phase else "the parity of a fresh barrier"
            return (
                f"a wait on {name} passes at once on {past}, and nothing makes it end before phase"
                f" {phase} completes",
                f"may complete phase {phase} before or after that wait",
            )
        case "lapped-wait":
            return (
                f"phase {phase} of {name} may complete before everyone has left the wait for phase"
                f" {phase - 1}, which then blocks again",
                f"may still be in the wait for phase {phase - 1}",
            )


# -- deadlocks -------------------------------------------------------------------------------------


def deadlock(outcome: Outcome) -> Finding:
    """Actors that wait for ever; whoever waits for the oldest step comes first."""
    blocked = outcome.blocked
    first = min(blocked, key=lambda b: _age(outcome, b))
    barrier = outcome.barriers[first.event.barrier]
    names = {b.event.barrier: outcome.system.barriers[b.event.barrier] for b in blocked}
    others = [
        (b.event.place, f"{b.state.actor} waits for phase {b.phase} of {names[b.event.barrier]}")
        for b in blocked
        if b.event.place != first.event.place
    ]
    waits = (f"{b.state.actor} for phase {b.phase} of {names[b.event.barrier]}" for b in blocked)
    return Finding(
        code=codes.DEADLOCK,
        message=f"{first.state.actor} waits for ever for phase {first.phase} of {barrier.barrier},"
        f" where {_due(barrier)} due",
        place=first.event.place,
        states=(first.state, *(b.state for b in blocked if b is not first)),
        moment=_joined(outcome, [b.state for b in blocked]),
        related=(*_missing(outcome, first), *others),
        facts={
            "barrier": str(barrier.barrier),
            "slot": barrier.barrier.slot,
            "phase": first.phase,
            "waiting": list(dict.fromkeys(waits)),
        },
        stuck=tuple((b.state, b.event, b.phase) for b in blocked),
        helps=("make the missing arrivals on every path and in every round",),
    )


def _joined(outcome: Outcome, states: list[ActorState]) -> Moment:
    """Everything that the actors know in the end."""
    return Moment(np.max([s.clock for s in states], axis=0), len(outcome.log))


def _age(outcome: Outcome, b: Blocked) -> tuple[int, bool, Span]:
    """Steps of a ring, or phases, before the one that an actor waits for."""
    barrier = outcome.system.barriers[b.event.barrier]
    group = (barrier.kind, barrier.name, barrier.cta)
    slots = sum((x.kind, x.name, x.cta) == group for x in outcome.system.barriers)
    rotates = barrier.kind in ("full", "empty", "mbarrier")
    step = b.phase * slots + barrier.slot if rotates else b.phase
    return (step, barrier.kind == "full", b.event.place)


def _due(barrier: MBarrier | HardwareBarrier) -> str:
    if isinstance(barrier, HardwareBarrier):
        return f"{barrier.threads - barrier.arrived} of {barrier.threads} threads are"
    bytes_due = f" and {barrier.tx} bytes" if barrier.tx > 0 else ""
    return f"{barrier.pending} of {barrier.barrier.count} arrivals{bytes_due} are"


def _missing(outcome: Outcome, b: Blocked) -> Iterator[tuple[Span, str]]:
    """Who would complete the phase if it had not to wait; else who reached such a barrier last."""
    name = outcome.system.barriers[b.event.barrier]
    found = False
    for other in outcome.blocked:
        rest = other.state.actor.events[other.state.position + 1 :]
        event = next((e for e in rest if _counts(e, {b.event.barrier})), None)
        if event is not None and other.state is not b.state:
            found = True
            where = f"waits in line {other.event.place.line}"
            yield (event.place, f"{other.state.actor} would reach {name} here, but {where}")
    if found:
        return
    alike = {
        i
        for i, x in enumerate(outcome.system.barriers)
        if (x.kind, x.name, x.cta) == (name.kind, name.name, name.cta)
    }
    last = next((e for e in reversed(outcome.log) if _counts(e.event, alike)), None)
    if last is not None:
        yield (last.event.place, f"{last.state.actor} reaches {name.name} for the last time here")


def _counts(event: Event, barriers: set[int]) -> bool:
    """Whether an event counts for a phase of one of some barriers."""
    if isinstance(event, ev.Copy):
        return any(landing.barrier in barriers for landing in event.landings)
    if isinstance(event, ev.Arrive | ev.ArriveWhenDone | ev.Expect | ev.Meet):
        return event.barrier in barriers
    return False
