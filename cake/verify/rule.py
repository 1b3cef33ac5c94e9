"""What a rule is: one module of :mod:`cake.verify.rules`.

The module's docstring is the explain page: its first line is the summary, the rest says what the
rule is, what happens if it is broken, what to write instead and where the rule comes from. The
module defines ``BAD`` and ``GOOD``, two complete schedules that run as tests: ``BAD`` must be
reported by exactly this rule, on the line that ends with the rule's code in a comment; ``GOOD``
must be accepted by all rules.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cake.diag import Code, Diagnostic, Fix, Related, Severity, Span, define
from cake.diag.model import Fact

if TYPE_CHECKING:
    from cake.verify.context import Context
    from cake.verify.questions import Question

Gate = Literal["program safety", "hardware conformance", "data consistency", "schedule semantics"]
Layer = Literal["L0", "L1", "L2", "L4"]
Level = Literal["strict", "idiom"]


@dataclass(frozen=True, slots=True)
class Uncovered:
    """Something that a rule could neither accept nor reject, with the reason.

    ``decider``: the layer that decides it after all, where it can follow the program; for L4
    ``question`` is what the solver is asked.
    """

    what: str
    decider: Layer | None = None
    question: Question | None = None


Finding = Diagnostic | Uncovered
Check = Callable[["Context"], Iterable[Finding]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A rule of the verifier.

    ``layer``: L0 rules look at structure, L1 rules count ring steps, L4 rules ask the solver what
    L0 has left open. ``contested``: practice disagrees with the letter of the manual; the finding
    keeps its severity at level ``strict`` and is a note at level ``idiom``.
    """

    entry: Code
    gate: Gate
    layer: Layer
    contested: bool
    check: Check
    bad: str
    good: str

    @property
    def code(self) -> str:
        return self.entry.code

    @property
    def name(self) -> str:
        return self.entry.name

    def at(
        self,
        span: Span,
        message: str,
        *,
        label: str | None = None,
        related: Iterable[tuple[Span, str]] = (),
        facts: Mapping[str, Fact] | None = None,
        helps: Iterable[str] = (),
        fix: Fix | None = None,
    ) -> Diagnostic:
        """A finding of this rule."""
        return Diagnostic.of(
            self.entry,
            message,
            span,
            label=label,
            related=tuple(Related(span=s, message=m) for s, m in related),
            facts=facts,
            helps=tuple(helps),
            fix=fix,
        )


_RULES: dict[str, Rule] = {}


def rule(
    *,
    code: str,
    name: str,
    gate: Gate,
    page: str | None,
    check: Check,
    bad: str,
    good: str,
    layer: Layer = "L0",
    severity: Severity = Severity.ERROR,
    contested: bool = False,
) -> Rule:
    """Register a rule and its code.

    Raises:
        ValueError: the page lacks a summary line, or code or name is taken.
    """
    text = inspect.cleandoc(page or "")
    summary = text.partition("\n")[0].rstrip(".")
    entry = define(
        code=code, name=name, severity=severity, stage="verify", summary=summary, page=text
    )
    made = Rule(
        entry=entry,
        gate=gate,
        layer=layer,
        contested=contested,
        check=check,
        bad=inspect.cleandoc(bad) + "\n",
        good=inspect.cleandoc(good) + "\n",
    )
    _RULES[code] = made
    return made


def registered() -> tuple[Rule, ...]:
    """Every rule whose module is imported, by code."""
    return tuple(_RULES[code] for code in sorted(_RULES))
