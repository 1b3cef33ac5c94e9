"""The verifier: does a program do what the machine allows, on every path and for every size?

``verify`` runs all rules, and the phase simulation if they have nothing to object. Its verdict is
honest about its limits: a program in which some construct was beyond them is ``incomplete``, not
accepted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Literal

import cake.verify.rules  # noqa: F401  (registers the rules)
from cake.diag import Diagnostic, Diagnostics, Severity
from cake.ir.program import Program
from cake.verify import coverage, phase, smt
from cake.verify.allowed import Allowances, Allowed
from cake.verify.context import Context
from cake.verify.rule import Layer, Level, Rule, Uncovered, registered

Status = Literal["accepted", "rejected", "incomplete"]

LAYERS: tuple[Layer, ...] = ("L0", "L1", "L2", "L4")
"""Structure, ring algebra, phase simulation, solver: what ``verify`` runs unless it is told
otherwise. (L3 is the simulator, L5 the build.)"""
RULES: tuple[Layer, ...] = ("L0", "L1")
"""The layers that take milliseconds, for screening many programs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says of a program.

    ``accepted``: no rule objects, and everything was covered. ``rejected``: there is an error.
    ``incomplete``: no error, but ``uncovered`` names what the rules could not decide. ``allowed``:
    findings that the author accepts, with the reasons.
    """

    status: Status
    diagnostics: tuple[Diagnostic, ...]
    uncovered: tuple[str, ...]
    allowed: tuple[Allowed, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against building the program."""
        return self.status != "rejected"


def verify(
    program: Program, *, level: Level = "strict", layers: Collection[Layer] = LAYERS
) -> Verdict:
    """Check a program.

    Args:
        program: an elaborated program.
        level: ``strict`` reports what the manuals ask for; ``idiom`` reduces contested findings,
            which established kernels live with, to notes.
        layers: what to run. The phase simulation (L2) follows the rules (L0 and L1), and only if
            they found no error: what they object to is the root of what it would report. Without
            it, what only it decides stays open. The solver (L4) is asked last what L0 could not
            decide, if nothing is wrong so far and z3 is installed.
    """
    context = Context(program)
    contested = [r.code for r in all_rules() if r.contested]
    allowances = Allowances(program, [*contested, *phase.CONTESTED])
    first, uncovered = _rules(context, level, [x for x in layers if x != "L4"])
    found = Diagnostics(allowances.rest(first))
    uncovered = [*coverage.uncovered(context), *uncovered]
    if "L2" in layers and not found.has_errors:
        diagnostics, left = _simulate(program, level, allowances)
        found.extend(diagnostics)
        # Where the simulation followed everything, it has decided what waits for it.
        decided = () if left else ("L2",)
        uncovered = [u for u in uncovered if u.decider not in decided]
        uncovered += map(Uncovered, left)
    if "L4" in layers and not found.has_errors:
        uncovered = _solve(context, level, found, uncovered)
    found.extend(allowances.findings(complete="L2" in layers and not found.has_errors))
    status: Status = "incomplete" if uncovered else "accepted"
    if found.has_errors:
        status = "rejected"
    names = dict.fromkeys(u.what for u in uncovered)
    return Verdict(
        status=status,
        diagnostics=tuple(found),
        uncovered=tuple(names),
        allowed=tuple(allowances.used),
    )


def _rules(
    context: Context, level: Level, layers: Collection[Layer]
) -> tuple[Diagnostics, list[Uncovered]]:
    """What the rules of some layers find, and what they leave open."""
    found, uncovered = Diagnostics(), []
    for rule in (r for r in all_rules() if r.layer in layers):
        # All findings of a rule come before its rings are blamed: rules do not silence themselves.
        for finding in tuple(rule.check(context)):
            if isinstance(finding, Uncovered):
                uncovered.append(finding)
                continue
            if rule.contested and level == "idiom":
                finding = replace(finding, severity=Severity.NOTE)
            found.add(finding)
            if finding.severity is Severity.ERROR:
                context.blamed.add(str(finding.facts.get("ring")))
    return found, uncovered


def _simulate(
    program: Program, level: Level, allowances: Allowances
) -> tuple[list[Diagnostic], tuple[str, ...]]:
    """What the phase simulation finds, without what is allowed, and what it leaves open."""
    # It ends at the first error; what is allowed must not end it.
    soft = level == "strict" and any(a.code in phase.CONTESTED for a in program.allowances)
    diagnostics, left = phase.check(program, level="idiom" if soft else level)
    rest = list(allowances.rest(diagnostics))
    if soft:
        contested = [d for d in rest if d.code in phase.CONTESTED]
        rest = [replace(d, severity=Severity.ERROR) if d in contested else d for d in rest]
    return rest, left


def _solve(
    context: Context, level: Level, found: Diagnostics, uncovered: list[Uncovered]
) -> list[Uncovered]:
    """Ask the solver about what is open; what stays so."""
    if not smt.available():
        return [replace(u, what=f"{u.what} {smt.HINT}") if u.question else u for u in uncovered]
    context.questions = [u.question for u in uncovered if u.question is not None]
    diagnostics, _ = _rules(context, level, ["L4"])
    found.extend(diagnostics)
    return [u for u in uncovered if u.question is None or not context.answers.get(u.question)]


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    return registered()


__all__ = [
    "LAYERS",
    "RULES",
    "Allowed",
    "Rule",
    "Status",
    "Uncovered",
    "Verdict",
    "all_rules",
    "verify",
]
