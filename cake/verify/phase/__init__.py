"""Layer L2 of the verifier: the phase simulation.

Roles, warps and engines run as actors of an abstract machine without values, at bounded trip
counts, with exact phases of all barriers and vector clocks over the bytes that are accessed. See
docs/design/phase_simulation.md.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from cake.diag import Diagnostic, Severity
from cake.diag.model import Fact
from cake.ir.program import Program
from cake.verify.phase.codes import UNFENCED_OVERWRITE
from cake.verify.phase.expand import Expander
from cake.verify.phase.findings import no_slot
from cake.verify.phase.outcome import Outcome
from cake.verify.phase.report import diagnostics, undecided
from cake.verify.phase.run import run
from cake.verify.phase.scenarios import Scenario, Scenarios, choosers, implied
from cake.verify.phase.unit import Beyond, NoSlot

CONTESTED = (UNFENCED_OVERWRITE.code,)
"""Errors that are notes at level ``idiom``."""

Found = tuple[tuple[Diagnostic, ...], tuple[str, ...]]


def check(program: Program, *, level: Literal["strict", "idiom"] = "strict") -> Found:
    """Run a program at bounded trip counts and report what goes wrong at the smallest of them.

    Args:
        program: a program without structural findings (layers L0 and L1).
        level: ``idiom`` reduces the contested finding (CK462) to a note.

    Returns:
        Diagnostics (CK450 to CK466) of the first run that has errors, and what could not be
        followed, in words. Each diagnostic has the facts ``sizes`` (dimensions of the run),
        ``tiles`` (tiles of one CTA), ``trips`` (rounds of its loops), ``role``, ``unit``, ``cta``,
        ``stage`` or ``slot``, ``phase`` (of ``barrier``, or of ``after``, what was waited for
        last), and ``trace``: the events that lead there, each as [actor, action, object, phase,
        line].
    """
    return _Search(program, level).result()


class _Search:
    """The runs of one program. ``notes`` are findings that are no errors."""

    def __init__(self, program: Program, level: Literal["strict", "idiom"]) -> None:
        self.level = level
        self.expander = Expander(program)
        self.scenarios = Scenarios(self.expander)
        self.notes: dict[tuple[str, str], Diagnostic] = {}
        self.uncovered: dict[str, None] = {}
        self.steady: dict[object, int] = {}

    def result(self) -> Found:
        """Run what decides; if that finds an error, what is smaller and shows it as well."""
        every = list(self.scenarios.all())
        passed_over = implied(every)
        for number, scenario in enumerate(every):
            if number in passed_over:
                continue
            errors = self._errors(scenario)
            if errors:
                smaller = (self._errors(s) for s in every[:number] if s is not scenario)
                return next(filter(None, smaller), errors), tuple(self.uncovered)
        return tuple(self.notes.values()), tuple(self.uncovered)

    def _errors(self, scenario: Scenario) -> tuple[Diagnostic, ...]:
        """The findings of the first run of a scenario that has errors."""
        if scenario.tiles > self.steady.get(scenario.kind, scenario.tiles):
            return ()
        settled = self.expander.regular and scenario.kind is not None
        try:
            for chooser in choosers(self.scenarios.data_options()):
                outcome = run(self.expander.expand(scenario.ctas, chooser))
                found = self._found(scenario, outcome)
                self.uncovered |= dict.fromkeys(undecided(outcome))
                if found and (roles := chooser.disagreeing()) is not None:
                    what = f"whether the data agree that roles {' and '.join(roles)} read"
                    self.uncovered[what] = None
                    continue
                if any(d.severity is Severity.ERROR for d in found):
                    return found
                self.notes |= {(d.code, str(d.span)): d for d in found}
                settled = settled and outcome.steady
        except NoSlot as cause:
            return (no_slot(cause, _where(scenario), _facts(scenario, self.scenarios)),)
        except Beyond as reason:
            self.uncovered[f"phase simulation: {reason}"] = None
            return ()
        if settled:
            self.steady.setdefault(scenario.kind, scenario.tiles)
        return ()

    def _found(self, scenario: Scenario, outcome: Outcome) -> tuple[Diagnostic, ...]:
        facts = {} if outcome.clean else _facts(scenario, self.scenarios)
        found = diagnostics(outcome, _where(scenario), facts, self.expander.loops)
        return tuple(_at_level(d, self.level) for d in found)


def _at_level(d: Diagnostic, level: Literal["strict", "idiom"]) -> Diagnostic:
    contested = d.code in CONTESTED and level == "idiom"
    return replace(d, severity=Severity.NOTE) if contested else d


def _where(scenario: Scenario) -> str:
    sizes = ", ".join(f"{k} = {v}" for k, v in scenario.sizes.items())
    tiles = f"{scenario.tiles} tiles of a CTA" if scenario.tiles > 1 else ""
    where = " and ".join(x for x in (sizes, tiles) if x)
    return f" ({where})" if where else ""


def _facts(scenario: Scenario, scenarios: Scenarios) -> dict[str, Fact]:
    return {
        "sizes": [f"{k} = {v}" for k, v in scenario.sizes.items()],
        "tiles": scenario.tiles,
        "trips": scenarios.trips(scenario),
    }


__all__ = ["Found", "check"]
