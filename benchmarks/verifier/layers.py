"""The static layers of the verifier, by the code of their findings."""

from __future__ import annotations

from functools import lru_cache

from cake.diag import Diagnostic, Severity
from cake.ir.program import Program
from cake.verify import Verdict, all_rules, verify


@lru_cache(maxsize=4)
def _verdict(program: Program) -> Verdict:
    return verify(program)


def errors(program: Program) -> tuple[Diagnostic, ...]:
    """What the static layers object to."""
    return tuple(d for d in _verdict(program).diagnostics if d.severity is Severity.ERROR)


def complete(program: Program) -> bool:
    """Whether the static layers could decide everything about a program without errors."""
    return _verdict(program).status == "accepted"


def layer(code: str) -> str:
    """The layer of a rule; codes without a rule are those of the phase simulation."""
    return next((r.layer for r in all_rules() if r.code == code), "L2")
