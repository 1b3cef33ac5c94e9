"""What runs find about memory and registers, put into words."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cake.diag import Code, Diagnostic, Severity, Span
from cake.diag.model import Fact
from cake.verify.phase import codes
from cake.verify.phase import events as ev
from cake.verify.phase.clocks import ActorState
from cake.verify.phase.events import Event, Key, System
from cake.verify.phase.memory import Race, Record
from cake.verify.phase.outcome import Held, Logged, Moment
from cake.verify.phase.trace import block_name, last_signal, late_announcement
from cake.verify.phase.unit import NoSlot


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A finding before it knows the sizes at which it was made.

    ``states`` are the actors involved, the one at ``place`` first; the trace shows what they do to
    ``key`` and to barriers up to ``moment``, and then the ``stuck`` waits with their phases.
    ``severity`` differs from that of the code where the case is a lighter one.
    """

    code: Code
    message: str
    place: Span
    states: tuple[ActorState, ...]
    moment: Moment
    related: tuple[tuple[Span, str], ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict)
    key: Key | None = None
    stuck: tuple[tuple[ActorState, Event, int], ...] = ()
    helps: tuple[str, ...] = ()
    severity: Severity | None = None


def race(found: Race, moment: Moment, log: list[Logged]) -> Finding:
    """Two accesses that nothing orders, or no fence."""
    old, new = found.old, found.new
    what = block_name(new.access.key)
    code, sense = _race_words(found)
    if code is codes.UNFINISHED and isinstance(old.event, ev.Copy):
        late = late_announcement(log, old.state, old.event)
        if late is not None:
            return _announced_late(found, moment, late)
    related = [(old.event.place, f"{old.state.actor} {_does(old)} {what} here")]
    states = [new.state]
    if old.state is not new.state:
        states.append(old.state)
        seen = last_signal(log, old.state, moment.clock)
        if seen is not None:
            said = f"the last signal of {old.state.actor} that has reached {new.state.actor}"
            related.append((seen.event.place, f"{said}; it does not cover that access"))
    return Finding(
        code=code,
        message=f"{new.state.actor} {_does(new)} {what} {sense}",
        place=new.event.place,
        states=tuple(states),
        moment=_with(moment, old),
        related=tuple(related),
        facts={
            "buffer": new.access.key[2],
            "stage": new.access.key[3],
            "other_role": old.state.actor.role,
            "other_line": old.event.place.line,
            "proxies": [old.access.proxy, new.access.proxy],
        },
        key=new.access.key,
        helps=_race_help(found),
    )


def _announced_late(found: Race, moment: Moment, late: Logged) -> Finding:
    """A copy counts for a phase after the one that is meant: its bytes were announced too late."""
    old, new = found.old, found.new
    what = block_name(new.access.key)
    return Finding(
        code=codes.ANNOUNCED_LATE,
        message=f"{old.state.actor} announces bytes for phase {late.phase}, after the arrival that"
        f" completes phase {late.phase - 1}: {new.state.actor} reads {what} before they are there",
        place=late.event.place,
        states=(old.state, new.state),
        moment=_with(moment, old),
        related=(
            (old.event.place, f"{old.state.actor} {_does(old)} {what} here"),
            (new.event.place, f"{new.state.actor} {_does(new)} {what} here"),
        ),
        facts={"buffer": new.access.key[2], "stage": new.access.key[3], "phase": late.phase},
        key=new.access.key,
        helps=("expect_tx, then the copies, then arrive",),
    )


def _with(moment: Moment, old: Record) -> Moment:
    """A moment that also knows of an access which nothing orders before it."""
    clock = moment.clock.copy()
    clock[old.state.index] = max(clock[old.state.index], old.now)
    return Moment(clock, moment.logged)


def _race_words(found: Race) -> tuple[Code, str]:
    old, new = found.old, found.new
    line = old.event.place.line
    if found.kind == "unfenced":
        sense = f"through the async proxy; the stores of line {line} are unfenced"
        reads = new.access.action == "read"
        return codes.UNFENCED if reads else codes.UNFENCED_OVERWRITE, sense
    if new.access.action == "read":
        return codes.UNFINISHED, f"before the write of line {line} is complete for it"
    if old.access.action == "read":
        return codes.OVERWRITTEN, f"while the read of line {line} may be unfinished"
    return codes.CONFLICTING_WRITES, f"and nothing orders that after the write of line {line}"


_WAITS: dict[str, str] = {
    "wgmma": "wgmma_wait before the signal that leads here",
    "bulk_group": "tma_store_wait by the storing unit before the signal that leads here",
    "cp_async": "cp_async_wait, then a barrier",
    "tcgen05": "tcgen05_commit to a barrier that is waited for here",
    "tcgen05_ld": "tcgen05_wait_ld before the signal that leads here",
}


def _race_help(found: Race) -> tuple[str, ...]:
    if found.kind == "unfenced":
        return ("fence_async() by the writing warps, before the barrier that leads here",)
    if isinstance(found.old.event, ev.Copy):
        return ("wait for the phase in which the copy's bytes are counted",)
    if isinstance(found.old.event, ev.Issue):
        return (_WAITS[found.old.event.engine],)
    return ("put a barrier of both actors between the accesses",)


def _does(record: Record) -> str:
    verb = {"read": "reads", "write": "writes", "atomic": "updates"}[record.access.action]
    if isinstance(record.event, ev.Copy):
        return f"{verb} (by a copy)"
    if isinstance(record.event, ev.Issue):
        engine = "a TMA store" if record.event.engine == "bulk_group" else record.event.engine
        return f"{verb} (by {engine})"
    return verb


def held(found: Held) -> Finding:
    """Registers used while an engine owns them."""
    engine, name = found.by.engine, found.name
    return Finding(
        code=codes.REGISTER_OWNED,
        message=f"{found.state.actor} touches {name} while the {engine} of line"
        f" {found.by.place.line} may own it",
        place=found.event.place,
        states=(found.state,),
        moment=found.moment,
        related=((found.by.place, f"{engine} takes {name} here"),),
        facts={"register": name},
        helps=("wait for the instruction first",),
    )


def unwritten(record: Record, moment: Moment, system: System, log: list[Logged]) -> Finding:
    """Data is read that nobody has written; for a ring's slot, with who acquired it."""
    what = block_name(record.access.key)
    guarding = {i for i, b in enumerate(system.barriers) if record.access.key in b.guards}
    waits = (e for e in reversed(log[: moment.logged]) if isinstance(e.event, ev.Wait))
    filled = next((e for e in waits if _barrier(e) in guarding), None)
    return Finding(
        code=codes.UNWRITTEN,
        message=f"{record.state.actor} {_does(record)} bytes of {what} that nobody has written"
        f"{' through a view of this swizzle' if record.access.region.layout else ''}",
        place=record.event.place,
        states=(record.state,),
        moment=moment,
        related=()
        if filled is None
        else ((filled.event.place, f"{filled.state.actor} acquires the slot here"),),
        facts={"buffer": record.access.key[2], "stage": record.access.key[3]},
        key=record.access.key,
        helps=("write, or copy, all that is read; a slot of a ring is empty when it is acquired",),
    )


def unfinished(record: Record, log: list[Logged]) -> Finding:
    """Work in flight at the end; a copy nobody waits for, with the last wait on its barrier."""
    related: list[tuple[Span, str]] = []
    if isinstance(record.event, ev.Copy):
        barriers = {landing.barrier for landing in record.event.landings}
        waits = (e for e in reversed(log) if isinstance(e.event, ev.Wait))
        last = next((e for e in waits if _barrier(e) in barriers), None)
        if last is not None:
            related = [(last.event.place, f"{last.state.actor} waits for the last time here")]
    doing = "write" if record.access.action == "write" else "read"
    what = block_name(record.access.key)
    return Finding(
        code=codes.EXIT_IN_FLIGHT,
        message=f"the CTA ends while this may still {doing} {what}: no actor of it waits for it",
        place=record.event.place,
        states=(record.state,),
        moment=Moment(record.state.clock, len(log)),
        related=tuple(related),
        facts={"buffer": record.access.key[2], "stage": record.access.key[3]},
        key=record.access.key,
        helps=(_last_wait(record),),
        severity=None if _outlives(record) else Severity.WARNING,
    )


def _last_wait(record: Record) -> str:
    """What lets a CTA end after an access to its shared memory."""
    if isinstance(record.event, ev.Copy):
        return "wait for the phase in which the copy's bytes are counted"
    assert isinstance(record.event, ev.Issue)
    return _WAITS[record.event.engine].partition(" before")[0]


def no_slot(found: NoSlot, where: str, facts: Mapping[str, Fact]) -> Diagnostic:
    """A barrier has no such slot: at once a diagnostic, for nothing has been run yet."""
    unit = found.unit
    return Diagnostic.of(
        codes.NO_SLOT,
        f"{unit.role}[{unit.index}] names slot {found.slot} of {found.name}, which it does not"
        f" have{where}",
        found.place,
        facts={
            "role": unit.role,
            "unit": unit.index,
            "cta": unit.rank,
            "barrier": found.name,
            "slot": found.slot,
            **facts,
        },
        helps=("take the slot modulo the number of slots",),
    )


def _barrier(e: Logged) -> int:
    assert isinstance(e.event, ev.Wait)
    return e.event.barrier


def _outlives(record: Record) -> bool:
    """Whether work goes on without its thread: cp.async is an instruction of the thread itself."""
    return not (isinstance(record.event, ev.Issue) and record.event.engine == "cp_async")
