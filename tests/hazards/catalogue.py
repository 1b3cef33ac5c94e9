"""The hazards: where the schedules that show each one are, or why the language cannot say it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cake.verify import all_rules
from tests.hazards.entries import ENTRIES, Entry
from tests.verify.test_legal import PATTERNS
from tests.verify_phase.schedules import RIGHT
from tests.verify_phase.test_hazards import HAZARDS

SCHEDULES = Path(__file__).parent / "schedules"
MARK = "# refused"
PHASES = "tests/verify_phase"
"""The source of schedules that show layer L2 something."""
_START = re.compile(r"^(?=@cake\.schedule)", re.MULTILINE)
_NAME = re.compile(r"^def (\w+)", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One schedule of a hazard: ``text`` is right if ``good``, else it has the hazard.

    ``source`` says where it is written: a rule, the phase simulation's tests, or a file here.
    """

    hazard: str
    source: str
    name: str
    good: bool
    text: str

    @property
    def marked(self) -> frozenset[int]:
        """The lines at which a refusal must point; none are marked in borrowed schedules."""
        lines = enumerate(self.text.split("\n"), 1)
        return frozenset(n for n, line in lines if line.endswith(MARK))

    @property
    def key(self) -> str:
        """The name of the case, as in ``zero-work/bad``."""
        return f"{self.hazard}/{self.name}"


def cases(entry: Entry) -> Iterator[Case]:
    """All schedules of a hazard."""
    for code in entry.rules:
        rule = next(r for r in all_rules() if r.code == code)
        for name, text in (("bad", rule.bad), ("good", rule.good)):
            yield _case(entry, f"rule {code}", f"{code} {name}", text)
    for name in entry.phase:
        shown = next(h for h in HAZARDS if h.name == name)
        yield _case(entry, PHASES, f"{name} bad", shown.text)
        yield _case(entry, PHASES, f"{name} good", RIGHT[shown.base])
    path = SCHEDULES / f"{entry.name.replace('-', '_')}.py"
    if path.exists():
        for name, text in split(path.read_text(encoding="utf-8")):
            yield _case(entry, f"schedules/{path.name}", name, text)


def _case(entry: Entry, source: str, name: str, text: str) -> Case:
    good = name.startswith("good") or name.endswith("good")
    return Case(hazard=entry.name, source=source, name=name, good=good, text=text)


def split(text: str) -> Iterator[tuple[str, str]]:
    """The schedules of a file by name."""
    for part in _START.split(text):
        if named := _NAME.search(part):
            yield named[1], part


@cache
def corpus() -> tuple[Case, ...]:
    """Every schedule of every hazard."""
    return tuple(case for entry in ENTRIES for case in cases(entry))


def legal() -> Mapping[str, str]:
    """The legal patterns that naive checkers refuse, by name."""
    return {name: text for name, (text, _) in PATTERNS.items()}
