"""The static layers of the verifier, by the code of their findings."""

from __future__ import annotations

from cake.diag import Diagnostic, Severity
from cake.ir.program import Program
from cake.verify import verify


def errors(program: Program) -> tuple[Diagnostic, ...]:
    """What the static layers object to."""
    return tuple(d for d in verify(program).diagnostics if d.severity is Severity.ERROR)


def complete(program: Program) -> bool:
    """Whether the static layers could decide everything about a program without errors."""
    return verify(program).status == "accepted"


def layer(code: str) -> str:
    """L0 (CK3xx), L1 (CK400 to CK449) or L2 (CK450 on), as docs/design/verifier.md says."""
    number = int(code.removeprefix("CK"))
    if number < 400:
        return "L0"
    return "L1" if number < 450 else "L2"
