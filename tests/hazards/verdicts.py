"""What the language, the verifier and the simulator say of a schedule of the corpus."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cake.diag import Diagnostic, Severity
from cake.ir.dtypes import numpy_dtype
from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.simulate import simulate
from cake.verify import all_rules, verify
from cake.verify.phase import check
from tests.hazards.catalogue import PHASES, Case

INPUTS: Mapping[str, tuple[Mapping[str, int], Mapping[str, float]]] = {
    "index-tensor-trust": ({"N": 3, "K": 5}, {"ids": 7, "x": 1.0}),
    "softmax-neg-inf": ({"M": 2}, {"x": -np.inf}),
}
"""Sizes and values for hazards that only data show."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """``status``: ``refused`` by the language, or a status of the verifier."""

    status: str
    findings: tuple[Diagnostic, ...]

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """Findings that stop the build."""
        return tuple(d for d in self.findings if d.severity is Severity.ERROR)

    @property
    def lines(self) -> frozenset[int]:
        """Where errors and what they are related to lie."""
        spans = [s for d in self.errors for s in (d.span, *(r.span for r in d.related))]
        return frozenset(s.line for s in spans if s is not None)


def said(case: Case) -> Said:
    """The static verdict on a case, at level ``strict``."""
    parsed = parse(case.text, case.key)
    if not parsed.ok:
        return Said(status="refused", findings=parsed.diagnostics)
    (program,) = parsed.programs
    if case.source == PHASES:
        # Their schedules are made for this layer alone: they leave out what others ask for.
        findings, uncovered = check(program)
        rejected = any(d.severity is Severity.ERROR for d in findings)
        status = "rejected" if rejected else "incomplete" if uncovered else "accepted"
        return Said(status=status, findings=findings)
    verdict = verify(program)
    return Said(status=verdict.status, findings=verdict.diagnostics)


def objected(case: Case, verdict: Said) -> bool:
    """Whether a verdict names the hazard: by an error, or at the lower severity of its rule."""
    if verdict.errors:
        return True
    code = case.source.removeprefix("rule ")
    mild = {r.code for r in all_rules() if r.entry.severity is not Severity.ERROR}
    return code in mild and any(d.code == code for d in verdict.findings)


def run(case: Case) -> str:
    """The code of the simulator's first finding, ``nan`` for such an output, or nothing."""
    (program,) = parse(case.text, case.key).programs
    sizes, values = INPUTS[case.hazard]
    arrays = _arrays(program, sizes, values)
    findings = simulate(program, arrays).findings
    if findings:
        return findings[0].code
    finite = all(np.isfinite(a).all() for name, a in arrays.items() if name not in values)
    return "" if finite else "nan"


def _arrays(
    program: Program, sizes: Mapping[str, int], values: Mapping[str, float]
) -> dict[str, Any]:
    shapes = {t.name: tuple(sizes.get(str(d), d) for d in t.shape) for t in program.tensors}
    return {
        t.name: np.full(shapes[t.name], values.get(t.name, 0), numpy_dtype(t.dtype))
        for t in program.tensors
    }
