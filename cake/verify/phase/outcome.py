"""What one run of a system found."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.diag import Span
from cake.verify.phase import events as ev
from cake.verify.phase.barriers import HardwareBarrier, MBarrier, Uncertain
from cake.verify.phase.clocks import ActorState, Clock
from cake.verify.phase.events import Event, System
from cake.verify.phase.memory import Race, Record


@dataclass(frozen=True, slots=True)
class Moment:
    """A point of a run: what has happened for certain, and how many events had been logged."""

    clock: Clock
    logged: int


@dataclass(frozen=True, slots=True)
class Blocked:
    """An actor that waits for ever, for which phase of which barrier."""

    state: ActorState
    event: ev.Wait | ev.Await
    phase: int


@dataclass(frozen=True, slots=True)
class Held:
    """Registers are used while an engine owns them."""

    state: ActorState
    event: Event
    name: str
    by: ev.Issue
    moment: Moment


@dataclass(frozen=True, slots=True)
class Doubtful:
    """An event whose phase is uncertain, and what the barrier said."""

    state: ActorState
    event: Event
    cause: Uncertain
    moment: Moment


@dataclass(frozen=True, slots=True)
class Logged:
    """An event that happened: by whom, when, and in which phase of its barrier."""

    state: ActorState
    event: Event
    now: int
    phase: int


@dataclass(slots=True)
class Outcome:
    """What one run found. ``log`` has what happened, in order."""

    system: System
    races: list[tuple[Race, Moment]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    doubt: Doubtful | None = None
    blocked: list[Blocked] = field(default_factory=list)
    unfinished: list[Record] = field(default_factory=list)
    unwritten: dict[Span, tuple[Record, Moment]] = field(default_factory=dict)
    log: list[Logged] = field(default_factory=list)
    steady: bool = False
    """The last two tiles left the same relative state."""
    barriers: list[MBarrier | HardwareBarrier] = field(default_factory=list)

    def moment(self, state: ActorState) -> Moment:
        """Where an actor stands now."""
        return Moment(state.clock.copy(), len(self.log))

    @property
    def clean(self) -> bool:
        """Whether nothing was found, and nothing depends on data."""
        found = (self.races, self.held, self.doubt, self.blocked, self.unfinished, self.unwritten)
        return not any(found)
