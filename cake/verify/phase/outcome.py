"""What one run of a system found."""

from __future__ import annotations

from dataclasses import dataclass, field

from cake.verify.phase import events as ev
from cake.verify.phase.barriers import HardwareBarrier, MBarrier, Uncertain
from cake.verify.phase.clocks import ActorState, Clock
from cake.verify.phase.events import Event, System
from cake.verify.phase.memory import Race, Record


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


@dataclass(frozen=True, slots=True)
class Doubtful:
    """An event whose phase is uncertain: what the barrier said, and the clock of that moment."""

    state: ActorState
    event: Event
    cause: Uncertain
    clock: Clock


@dataclass(frozen=True, slots=True)
class Logged:
    """An event that happened: by whom, when, and in which phase of its barrier."""

    state: ActorState
    event: Event
    now: int
    phase: int


@dataclass(slots=True)
class Outcome:
    """What one run found. ``log`` has what happened, in order; ``clocks`` those of the races."""

    system: System
    races: list[tuple[Race, Clock]] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    doubt: Doubtful | None = None
    blocked: list[Blocked] = field(default_factory=list)
    unfinished: list[Record] = field(default_factory=list)
    log: list[Logged] = field(default_factory=list)
    steady: bool = False
    """The last two tiles left the same relative state."""
    barriers: list[MBarrier | HardwareBarrier] = field(default_factory=list)

    @property
    def clean(self) -> bool:
        """Whether nothing was found, and nothing depends on data."""
        return not (self.races or self.held or self.doubt or self.blocked or self.unfinished)
