"""From what a run found to diagnostics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from cake.diag import Diagnostic, Related, Span
from cake.diag.model import Fact
from cake.verify.phase import findings, phases
from cake.verify.phase.findings import Finding
from cake.verify.phase.outcome import Outcome
from cake.verify.phase.trace import entry, past, touching

MAX_FINDINGS = 4
"""Findings of one run: more are consequences of the first."""


def diagnostics(outcome: Outcome, where: str, facts: Mapping[str, Fact]) -> Iterator[Diagnostic]:
    """The findings of a run; ``where`` and ``facts`` say at which sizes it was made.

    An uncertain phase stands alone, since what comes after it depends on it.
    """
    seen: set[tuple[str, Span, tuple[Span, ...]]] = set()
    for f in _findings(outcome):
        key = (f.code.code, f.place, tuple(span for span, _ in f.related[:1]))
        if key not in seen and len(seen) < MAX_FINDINGS:
            seen.add(key)
            yield _diagnostic(outcome, f, where, facts)


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
    for race, clock in outcome.races:
        if race.certain:
            yield findings.race(race, clock, outcome.log)
    yield from map(findings.held, outcome.held)
    if outcome.blocked:
        yield phases.deadlock(outcome)
    yield from map(findings.unfinished, outcome.unfinished)


def _diagnostic(outcome: Outcome, f: Finding, where: str, facts: Mapping[str, Fact]) -> Diagnostic:
    actor = f.states[0].actor
    trace = past(outcome.system, outcome.log, f.clocks, touching(f.states, f.key))
    trace += [
        entry(state, event, phase, outcome.system, stuck=True) for state, event, phase in f.stuck
    ]
    own: dict[str, Fact] = {"role": actor.role, "unit": actor.unit, "cta": actor.cta}
    made = Diagnostic.of(
        f.code,
        f.message + where,
        f.place,
        related=tuple(Related(span=s, message=m) for s, m in dict.fromkeys(f.related)),
        facts={**own, **f.facts, **facts, "trace": trace},
        helps=f.helps,
    )
    return made if f.severity is None else replace(made, severity=f.severity)
