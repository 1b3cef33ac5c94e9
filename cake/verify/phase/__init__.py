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
from cake.verify.phase.report import diagnostics, undecided
from cake.verify.phase.run import run
from cake.verify.phase.scenarios import Scenario, Scenarios, choosers
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
    notes: dict[tuple[str, str], Diagnostic] = {}
    uncovered: dict[str, None] = {}
    expander = Expander(program)
    scenarios = Scenarios(expander)
    steady: dict[object, int] = {}
    for scenario in scenarios.all():
        if scenario.tiles > steady.get(scenario.kind, scenario.tiles):
            continue
        settled = expander.regular and scenario.kind is not None
        try:
            for chooser in choosers(scenarios.data_options()):
                outcome = run(expander.expand(scenario.ctas, chooser))
                facts = {} if outcome.clean else _facts(scenario, scenarios)
                found = [
                    _at_level(d, level)
                    for d in diagnostics(outcome, _where(scenario), facts, expander.loops)
                ]
                uncovered |= dict.fromkeys(undecided(outcome))
                if found and (roles := chooser.disagreeing()) is not None:
                    uncovered[f"whether the data agree that roles {' and '.join(roles)} read"] = (
                        None
                    )
                    continue
                if any(d.severity is Severity.ERROR for d in found):
                    return tuple(found), tuple(uncovered)
                notes |= {(d.code, str(d.span)): d for d in found}
                settled = settled and outcome.steady
        except NoSlot as found_none:
            facts = _facts(scenario, scenarios)
            return (no_slot(found_none, _where(scenario), facts),), tuple(uncovered)
        except Beyond as reason:
            uncovered[f"phase simulation: {reason}"] = None
            continue
        if settled:
            steady.setdefault(scenario.kind, scenario.tiles)
    return tuple(notes.values()), tuple(uncovered)


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
