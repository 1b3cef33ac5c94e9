"""Every rule's own examples, and what holds for the set of rules as a whole."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path

import pytest

import cake.verify.rules
from cake.diag import explain
from cake.verify import Rule, all_rules, smt

from .examples import found, marked_lines, verdict

RULES = [r for r in all_rules() if r.layer != "L4" or smt.available()]
by_name = pytest.mark.parametrize("rule", RULES, ids=lambda r: r.name)


@by_name
def test_bad_is_reported_by_this_rule_alone_on_the_marked_line(rule: Rule) -> None:
    v = verdict(rule.bad)
    assert {d.code for d in v.diagnostics} == {rule.code}, found(v)
    assert [d.span.line for d in v.diagnostics if d.span] == marked_lines(rule.bad, rule.code)
    assert (v.status == "rejected") == (rule.entry.severity == "error"), found(v)


@by_name
def test_good_is_accepted_by_all_rules(rule: Rule) -> None:
    v = verdict(rule.good)
    assert not v.diagnostics, found(v)
    assert all(smt.HINT in u and not smt.available() for u in v.uncovered), found(v)


@by_name
def test_the_page_says_rule_consequence_remedy_and_source(rule: Rule) -> None:
    page = explain(rule.code)
    assert rule.name in page
    for part in ("**Rule.**", "**If broken.**", "**Instead.**", "**Source.**"):
        assert part in rule.entry.page, part


def test_contested_rules_are_notes_at_level_idiom() -> None:
    contested = [r for r in RULES if r.contested]
    assert contested
    for rule in contested:
        v = verdict(rule.bad, level="idiom")
        assert [d.severity for d in v.diagnostics] == ["note"], found(v)
        assert v.status == "accepted", found(v)


def test_there_are_rules_of_every_gate_and_layer() -> None:
    assert len(RULES) >= 45
    assert {r.layer for r in all_rules()} == {"L0", "L1", "L4"}
    assert len({r.gate for r in RULES}) == 4


def test_codes_follow_the_layers() -> None:
    codes = {"L0": r"CK3\d\d", "L1": r"CK4[0-4]\d", "L4": r"CK4[7-9]\d"}
    for rule in all_rules():
        assert re.fullmatch(codes[rule.layer], rule.code)


def test_each_rule_has_a_short_file_of_its_own() -> None:
    folder = Path(inspect.getfile(cake.verify.rules)).parent
    files = sorted(p for p in folder.glob("*.py") if p.name != "__init__.py")
    modules = [sys.modules[r.check.__module__] for r in all_rules()]
    assert sorted(Path(inspect.getfile(m)) for m in modules) == files
    for file in files:
        assert len(file.read_text().splitlines()) <= 130, file
