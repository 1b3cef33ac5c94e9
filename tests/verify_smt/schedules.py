"""From a schedule's text to what the layers L0, L1 and L4 say of it."""

from __future__ import annotations

from cake.lang.elaborate import parse
from cake.verify import Verdict, verify


def judged(text: str) -> Verdict:
    """The verdict on a text with one schedule; the phase simulation is left out."""
    parsed = parse(text, "example.py")
    assert parsed.ok, "\n".join(f"{d.span}: {d.message}" for d in parsed.diagnostics)
    (program,) = parsed.programs
    return verify(program, layers=("L0", "L1", "L4"))


def codes(v: Verdict) -> set[str]:
    """The codes of a verdict's errors."""
    return {d.code for d in v.diagnostics if d.severity == "error"}


def said(v: Verdict) -> str:
    """Everything a verdict says, for assertion messages."""
    return "\n".join([v.status, *(f"{d.code} {d.message}" for d in v.diagnostics), *v.uncovered])
