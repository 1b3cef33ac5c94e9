"""From what a run found to diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cake.diag import Diagnostic, Related, Span
from cake.diag.model import Fact
from cake.verify.phase import codes, findings, phases
from cake.verify.phase import events as ev
from cake.verify.phase.events import Barrier, Event
from cake.verify.phase.findings import Finding
from cake.verify.phase.outcome import Outcome
from cake.verify.phase.trace import entry, last_wait, past, touching

MAX_FINDINGS = 4
"""Findings of one run: more are consequences of the first."""


def diagnostics(
    outcome: Outcome, where: str, facts: Mapping[str, Fact], loops: Mapping[Span, Span]
) -> Iterator[Diagnostic]:
    """The findings of a run; ``where`` and ``facts`` say at which sizes it was made.

    ``loops`` are the heads of the loops around places: where steps do not match, a trip count may
    be at fault. An uncertain phase stands alone, since what comes after it depends on it.
    """
    seen: set[tuple[str, Span, tuple[Span, ...]]] = set()
    for f in _findings(outcome):
        key = (f.code.code, f.place, tuple(span for span, _ in f.related[:1]))
        if key not in seen and len(seen) < MAX_FINDINGS:
            seen.add(key)
            yield _diagnostic(outcome, _with_loops(f, loops), where, facts)


def undecided(outcome: Outcome) -> Iterator[str]:
    """Conflicts that data may prevent."""
    for race, _ in outcome.races:
        if not race.certain:
            lines = sorted((race.old.event.place.line, race.new.event.place.line))
            yield (
                f"whether the accesses to {race.new.access.key[2]} in lines {lines[0]} and"
                f" {lines[1]} touch the same bytes"
            )


def _findings(outcome: Outcome) -> Iterator[Finding]:
    if outcome.doubt is not None:
        yield phases.uncertain(outcome, outcome.doubt)
        return
    for race, moment in outcome.races:
        if race.certain:
            yield findings.race(race, moment, outcome.log)
    yield from map(findings.held, outcome.held)
    for record, moment in outcome.unwritten.values():
        yield findings.unwritten(record, moment, outcome.system, outcome.log)
    if outcome.blocked:
        yield phases.deadlock(outcome)
    yield from (findings.unfinished(record, outcome.log) for record in outcome.unfinished)


def _with_loops(f: Finding, loops: Mapping[Span, Span]) -> Finding:
    """A finding about steps that do not match, with the loops around its places."""
    if f.code not in (codes.DEADLOCK, codes.EXIT_IN_FLIGHT):
        return f
    places = dict.fromkeys((f.place, *(span for span, _ in f.related)))
    heads = dict.fromkeys(loops[p] for p in places if p in loops)
    return replace(f, related=(*f.related, *((head, "a loop around it") for head in heads)))


def _barrier(outcome: Outcome, event: Event) -> Barrier:
    assert isinstance(event, ev.Wait | ev.Await)
    return outcome.system.barriers[event.barrier]


def _diagnostic(outcome: Outcome, f: Finding, where: str, facts: Mapping[str, Fact]) -> Diagnostic:
    actor = f.states[0].actor
    trace = past(outcome.system, outcome.log, f.moment, touching(f.states, f.key))
    trace += [
        entry(state, event, phase, outcome.system, stuck=True) for state, event, phase in f.stuck
    ]
    own: dict[str, Fact] = {"role": actor.role, "unit": actor.unit, "cta": actor.cta}
    waited = last_wait(outcome.log[: f.moment.logged], f.states[0])
    if waited is not None:
        own |= {"after": str(_barrier(outcome, waited.event)), "phase": waited.phase}
    made = Diagnostic.of(
        f.code,
        f.message + where,
        f.place,
        related=tuple(Related(span=s, message=m) for s, m in dict.fromkeys(f.related)),
        facts={**own, **f.facts, **facts, "trace": trace},
        helps=f.helps,
    )
    return made if f.severity is None else replace(made, severity=f.severity)
