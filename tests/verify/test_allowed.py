"""Findings that the author accepts."""

from __future__ import annotations

import pytest

from cake.ir.same import same
from cake.lang.elaborate import parse
from cake.lang.printer import print_program
from cake.verify import Verdict, all_rules, verify
from cake.verify.rule import Level, Rule

from .examples import found, programs

SUMS = """
@cake.schedule(target="sm_80")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        {above}
        reduce_add(y[lane()], load(x[m, lane()])){behind}
"""
ALLOW = "# cake: allow CK328 because the order is free"
CONTESTED = next(r for r in all_rules() if r.contested)


def judged(text: str, level: Level = "strict") -> Verdict:
    (program,) = programs(text)
    return verify(program, level=level)


def codes(v: Verdict) -> list[str]:
    return [d.code for d in v.diagnostics]


@pytest.mark.parametrize(("above", "behind"), [(ALLOW, ""), ("pass", f"  {ALLOW}")])
def test_a_note_is_allowed_with_its_reason(above: str, behind: str) -> None:
    assert codes(judged(SUMS.format(above="pass", behind=""))) == ["CK328"]
    v = judged(SUMS.format(above=above, behind=behind))
    assert not v.diagnostics, found(v)
    assert v.status == "accepted"
    (allowed,) = v.allowed
    assert allowed.diagnostic.code == "CK328"
    assert allowed.reason == "the order is free"


def test_an_allowance_of_another_line_is_unused() -> None:
    text = SUMS.format(above="pass", behind="").replace(
        "r = role(warps=1)", f"r = role(warps=1)  {ALLOW}"
    )
    v = judged(text)
    assert codes(v) == ["CK480", "CK328"], found(v)
    assert not v.allowed


def test_an_allowance_of_another_finding_is_unused() -> None:
    v = judged(SUMS.format(above=ALLOW.replace("CK328", "CK380"), behind=""))
    assert sorted(codes(v)) == ["CK328", "CK480"], found(v)


@pytest.mark.parametrize(
    "comment",
    [
        "# cake: allow CK328",
        "# cake: allow CK328 because",
        "# cake: allow because the order is free",
        "# cake: allows CK328 because the order is free",
        "# cake: allow CK28 because the order is free",
    ],
)
def test_a_comment_without_code_or_reason_is_an_error(comment: str) -> None:
    parsed = parse(SUMS.format(above=comment, behind=""), "example.py")
    assert [d.code for d in parsed.diagnostics] == ["CK007"]
    assert not parsed.ok


def test_other_comments_are_free() -> None:
    assert codes(judged(SUMS.format(above="# cake is good, cake: is better", behind=""))) == [
        "CK328"
    ]


SOUND = [
    r for r in all_rules() if r.entry.severity == "error" and not r.contested and r.layer != "L4"
]


@pytest.mark.parametrize("rule", SOUND, ids=lambda r: r.name)
def test_soundness_cannot_be_allowed(rule: Rule) -> None:
    marked = rule.bad.replace(f"# {rule.code}", f"# cake: allow {rule.code} because I say so")
    v = judged(marked)
    assert set(codes(v)) == {rule.code, "CK481"}, found(v)
    assert v.status == "rejected"


@pytest.mark.parametrize("code", ["CK604", "CK999", "CK450"])
def test_what_the_verifier_does_not_say_cannot_be_allowed(code: str) -> None:
    v = judged(SUMS.format(above="pass", behind=f"  # cake: allow {code} because I say so"))
    assert "CK481" in codes(v), found(v)


def test_a_contested_error_can_be_allowed() -> None:
    v = judged(
        CONTESTED.bad.replace(
            f"# {CONTESTED.code}", f"# cake: allow {CONTESTED.code} because it holds"
        )
    )
    assert not v.diagnostics, found(v)
    assert v.status == "accepted"
    assert [a.diagnostic.code for a in v.allowed] == [CONTESTED.code]


def test_printing_keeps_allowances() -> None:
    (program,) = programs(
        SUMS.format(above="for k in static_range(3):", behind=f"  {ALLOW}").replace(
            "        reduce_add", "            reduce_add"
        )
    )
    text = print_program(program)
    assert text.count(ALLOW) == 3
    (again,) = programs(text)
    assert same(program, again) is None
    assert print_program(again) == text
    v = verify(again)
    assert not v.diagnostics, found(v)
    assert len(v.allowed) == 3


def test_allowances_stand_at_schedules_and_parameters() -> None:
    text = """
# cake: allow CK303 because of the whole
@cake.schedule(target="sm_80")
def kernel(
    # cake: allow CK320 because of x
    x: Tensor[f32, "N"],
    y: Tensor[f32, "N"],  # cake: allow CK324 because of y
):
    r = role(warps=1)
    with r:
        store(x[0], 0.0)
"""
    (program,) = programs(text)
    lines = text.split("\n")
    covered = {a.code: [lines[n - 1].strip() for n in (a.line, a.last)] for a in program.allowances}
    assert covered["CK320"] == ['x: Tensor[f32, "N"],'] * 2
    assert covered["CK324"][0].startswith("y: Tensor")
    assert any(a.code == "CK303" and a.covers(program.loc) for a in program.allowances)
    assert [a.code for a in programs(print_program(program))[0].allowances] == [
        "CK303",
        "CK320",
        "CK324",
    ]


def test_a_helper_is_allowed_for_all_its_schedules() -> None:
    text = """
@cake.inline
def add(v):
    # cake: allow CK328 because the order is free
    reduce_add(y[lane()], v)

@cake.schedule(target="sm_80")
def one(x: Tensor[f32, "M", 32], y: Tensor[f32, 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        add(load(x[m, lane()]))

@cake.schedule(target="sm_80")
def two(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    m = grid(M)
    r = role(warps=1)
    with r:
        store(y[m, lane()], load(x[m, lane()]))
"""
    one, two = (verify(p) for p in programs(text))
    assert not one.diagnostics, found(one)
    assert len(one.allowed) == 1
    assert not two.diagnostics, found(two)
