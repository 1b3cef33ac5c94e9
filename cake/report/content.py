"""What a report shows of a run, read once from its database."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake.evolve.config import Best
from cake.evolve.outputs import best_files
from cake.evolve.ranking import distances, rank
from cake.evolve.schema import CandidateRow, EvaluationRow
from cake.evolve.setting import Setting
from cake.evolve.store import Store
from cake.evolve.summary import best, funnel

_FIGURE = re.compile(r"\b\d+\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Findings, or reasons to filter, that are alike: ``example`` is one of ``count``."""

    label: str
    count: int
    example: str
    detail: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Content:
    """One run. ``leaders`` are the evaluations that were the best when they finished, with their
    place in the order of evaluations, from 1."""

    folder: Path
    setting: Setting
    sessions: Sequence[Mapping[str, Any]]
    seconds: float
    funnel: Mapping[str, int]
    candidates: Sequence[CandidateRow]
    evaluations: Sequence[EvaluationRow]
    confirmations: Mapping[int, tuple[str, str]]
    leaders: Sequence[tuple[int, EvaluationRow]]
    best: Best | None
    files: Mapping[str, str]
    filtered: Sequence[Group]
    findings: Sequence[Group]

    @property
    def measured(self) -> bool:
        """Whether any candidate was measured."""
        return any(e.measured is not None for e in self.evaluations)


def read_content(folder: Path) -> Content:
    """Everything about the run in ``folder``. Raises :class:`CakeError` (``not-a-run``)."""
    with Store.open(folder, writable=False) as store:
        candidates, evaluations = store.candidates(), store.evaluations()
        return Content(
            folder=folder,
            setting=store.setting,
            sessions=store.sessions(),
            seconds=store.seconds_spent(),
            funnel=funnel(store),
            candidates=candidates,
            evaluations=evaluations,
            confirmations=store.confirmations(),
            leaders=_leaders(evaluations, distances(store)),
            best=best(store),
            files=best_files(store),
            filtered=_filtered(candidates),
            findings=_findings([finding for _, finding in store.findings()]),
        )


def _leaders(
    evaluations: Sequence[EvaluationRow], steps: Mapping[int, int]
) -> list[tuple[int, EvaluationRow]]:
    found: list[tuple[int, EvaluationRow]] = []
    leading = None
    for number, e in enumerate(evaluations, 1):
        place = rank(e, steps[e.candidate])
        if place is not None and (leading is None or place < leading):
            leading = place
            found.append((number, e))
    return found


def _filtered(candidates: Sequence[CandidateRow]) -> list[Group]:
    """Why points did not reach an evaluation, the most frequent reason first.

    Reasons that differ in figures alone are one group.
    """
    groups: dict[tuple[str, str], list[str]] = {}
    for c in candidates:
        if c.status != "kept":
            key = c.status, _FIGURE.sub("#", c.reason)
            groups.setdefault(key, []).append(c.reason)
    made = [
        Group(label=status, count=len(reasons), example=reasons[0], detail={})
        for (status, _), reasons in groups.items()
    ]
    return sorted(made, key=lambda g: -g.count)


def _findings(findings: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Findings by fingerprint, errors first, then by frequency."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for f in findings:
        groups.setdefault(f["fingerprint"], []).append(f)
    made = [
        Group(label=g[0]["code"], count=len(g), example=g[0]["message"], detail=g[0])
        for g in groups.values()
    ]
    return sorted(made, key=lambda g: (g.detail["severity"] != "error", -g.count))
