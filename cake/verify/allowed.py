"""Findings that the author accepts (``# cake: allow CODE because REASON``).

Notes, warnings and contested findings can be accepted: they say what a reader should know, or what
practice disagrees about. All other errors are about soundness, and no reason makes a race or an
access outside a tensor right.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from cake.diag import Diagnostic, Severity, UnknownCodeError, define, lookup
from cake.ir.program import Allowance, Program

UNUSED = define(
    code="CK480",
    name="allowance-unused",
    severity=Severity.WARNING,
    stage="verify",
    summary="A finding is allowed that is not there.",
    page="""
`# cake: allow CODE because REASON` accepts a finding on its line, or, on a line of its own, on the
statement that follows. Here there is none with this code: the schedule has changed, or the comment
stands in the wrong place. Remove it: it would hide the next finding of this kind.
""",
)

REFUSED = define(
    code="CK481",
    name="allowance-refused",
    severity=Severity.ERROR,
    stage="verify",
    summary="A finding is allowed that no reason can make right.",
    page="""
Notes, warnings and contested findings can be allowed. An error that is not contested says that the
program races, hangs, computes something undefined or leaves its memory for some size and some order
of events; it cannot be allowed. Nor can findings of other stages than the verifier. Correct the
schedule; if the finding is wrong, report it as a fault of the verifier, with the schedule.
""",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """A finding that was accepted, and the author's reason."""

    diagnostic: Diagnostic
    reason: str


class Allowances:
    """The allowances of a program, while findings come in. ``contested``: codes of errors that may
    be allowed."""

    def __init__(self, program: Program, contested: Iterable[str]) -> None:
        self.contested = frozenset(contested)
        self.used: list[Allowed] = []
        self._sound = [a for a in program.allowances if self._problem(a) is None]
        self._refused = [a for a in program.allowances if self._problem(a) is not None]
        self._hits: set[tuple[str, str]] = set()

    def rest(self, found: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
        """The findings that are not allowed; the others go to ``used``."""
        for d in found:
            at = next((a for a in self._sound if a.code == d.code and _covers(a, d)), None)
            if at is None:
                yield d
            else:
                self._hits.add((at.code, at.reason))
                self.used.append(Allowed(diagnostic=d, reason=at.reason))

    def findings(self, complete: bool) -> Iterator[Diagnostic]:
        """What is wrong with the allowances. ``complete``: everything has been looked for, so that
        those without a finding are unused."""
        for a in self._refused:
            problem = self._problem(a)
            assert problem is not None
            facts = {"code": a.code, "reason": a.reason}
            helps = ("correct the schedule and remove the comment",)
            yield Diagnostic.of(REFUSED, problem, a.loc, facts=facts, helps=helps)
        for a in self._sound if complete else ():
            # One comment may have become several, where a loop was unrolled.
            if (a.code, a.reason) not in self._hits and not a.shared:
                message = f"there is no {a.code} here to allow"
                yield Diagnostic.of(
                    UNUSED, message, a.loc, facts={"code": a.code}, helps=("remove the comment",)
                )

    def _problem(self, a: Allowance) -> str | None:
        """Why a finding cannot be allowed."""
        try:
            code = lookup(a.code)
        except UnknownCodeError:
            return f"{a.code} is no finding of the verifier"
        if code.stage != "verify":
            return f"{a.code} {code.name} is no finding of the verifier"
        if code.severity is Severity.ERROR and a.code not in self.contested:
            return f"{a.code} {code.name} is about soundness and cannot be allowed"
        return None


def _covers(a: Allowance, d: Diagnostic) -> bool:
    return d.span is not None and d.span.file == a.loc.file and a.covers(d.span)
