"""The verifier: does a program do what the machine allows, on every path and for every size?

``verify`` runs all rules. Its verdict is honest about its limits: a program in which some
construct was beyond the rules is ``incomplete``, not accepted.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import cake.verify.rules  # noqa: F401  (registers the rules)
from cake.diag import Diagnostic, Diagnostics, Severity
from cake.ir.program import Program
from cake.verify import coverage
from cake.verify.context import Context
from cake.verify.rule import Level, Rule, Uncovered, registered

Status = Literal["accepted", "rejected", "incomplete"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the verifier says of a program.

    ``accepted``: no rule objects, and everything was covered. ``rejected``: there is an error.
    ``incomplete``: no error, but ``uncovered`` names what the rules could not decide.
    """

    status: Status
    diagnostics: tuple[Diagnostic, ...]
    uncovered: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against building the program."""
        return self.status != "rejected"


def verify(program: Program, *, level: Level = "strict") -> Verdict:
    """Check a program against every rule.

    Args:
        program: an elaborated program.
        level: ``strict`` reports what the manuals ask for; ``idiom`` reduces contested findings,
            which established kernels live with, to notes.
    """
    context = Context(program)
    found = Diagnostics()
    uncovered = dict.fromkeys(coverage.uncovered(context))
    for rule in all_rules():
        # All findings of a rule come before its rings are blamed: rules do not silence themselves.
        for finding in tuple(rule.check(context)):
            if isinstance(finding, Uncovered):
                uncovered[finding.what] = None
                continue
            if rule.contested and level == "idiom":
                finding = replace(finding, severity=Severity.NOTE)
            found.add(finding)
            if finding.severity is Severity.ERROR:
                context.blamed.add(str(finding.facts.get("ring")))
    status: Status = "incomplete" if uncovered else "accepted"
    if found.has_errors:
        status = "rejected"
    return Verdict(status=status, diagnostics=tuple(found), uncovered=tuple(uncovered))


def all_rules() -> tuple[Rule, ...]:
    """Every rule, by code."""
    return registered()


__all__ = ["Rule", "Status", "Uncovered", "Verdict", "all_rules", "verify"]
