"""Every hazard that a schedule can have is refused, and its right form is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.hazards.catalogue import MARK, SCHEDULES, Case, corpus, legal
from tests.hazards.entries import ENTRIES, Entry
from tests.hazards.verdicts import INPUTS, objected, run, said

PAGE = Path(__file__).parents[2] / "docs" / "hazards.md"

GAPS: dict[str, str] = {}
"""Bad schedules that the static layers accept, and good ones that they refuse, so far."""

LEFT_OPEN = {
    "flag-protocol/good": "order between CTAs is left open",
}
"""Good schedules with the verdict incomplete."""

STATIC = [e.name for e in ENTRIES if not e.runtime]


def cases(*, good: bool) -> list[object]:
    """Cases that the static layers decide; known gaps are expected to fail."""
    return [
        pytest.param(c, id=c.key, marks=[pytest.mark.xfail(reason=GAPS[c.key])])
        if c.key in GAPS
        else pytest.param(c, id=c.key)
        for c in corpus()
        if c.good is good and (good or c.hazard in STATIC)
    ]


@pytest.mark.parametrize("case", cases(good=False))
def test_a_bad_schedule_is_refused_where_it_is_wrong(case: Case) -> None:
    verdict = said(case)
    assert objected(case, verdict), verdict.status
    assert not case.marked or case.marked & verdict.lines, [str(d) for d in verdict.errors]


@pytest.mark.parametrize("case", cases(good=True))
def test_a_good_schedule_is_accepted(case: Case) -> None:
    verdict = said(case)
    assert not verdict.errors, [f"{d.span}: {d.message}" for d in verdict.errors]
    assert verdict.status == ("incomplete" if case.key in LEFT_OPEN else "accepted")


@pytest.mark.parametrize("case", [c for c in corpus() if c.hazard in INPUTS], ids=lambda c: c.key)
def test_what_depends_on_data_is_found_by_a_run(case: Case) -> None:
    assert bool(run(case)) is not case.good


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda e: e.name)
def test_every_hazard_has_both_schedules_or_a_reason(entry: Entry) -> None:
    kinds = {c.good for c in corpus() if c.hazard == entry.name}
    assert kinds == ({True, False} if entry.expressible else set())
    assert not (entry.never and entry.missing)
    assert (entry.runtime == "simulator") is (entry.name in INPUTS)


def test_every_file_belongs_to_a_hazard_and_marks_its_slips() -> None:
    stems = {e.name.replace("-", "_") for e in ENTRIES}
    for path in SCHEDULES.iterdir():
        assert path.stem in stems, path
    own = [c for c in corpus() if c.source.startswith("schedules/")]
    for case in own:
        assert bool(case.marked) is (not case.good and not INPUTS.get(case.hazard)), case.key
        assert MARK not in case.text.replace(f"  {MARK}\n", "\n"), case.key


@pytest.mark.parametrize("level", ["strict", "idiom"])
@pytest.mark.parametrize("name", legal())
def test_a_legal_pattern_is_accepted(name: str, level: str) -> None:
    case = Case(hazard="legal", source="tests/verify", name=name, good=True, text=legal()[name])
    verdict = said(case)
    assert not verdict.errors
    assert verdict.status in ("accepted", "incomplete")


def test_the_page_is_up_to_date_in_names_and_reasons() -> None:
    text = PAGE.read_text(encoding="utf-8")
    for entry in ENTRIES:
        assert f"| {entry.name} | " in text
        assert (entry.never or entry.missing) in text
