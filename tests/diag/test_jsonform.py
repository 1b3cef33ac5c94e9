import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cake.diag import (
    Diagnostic,
    Edit,
    Fix,
    Related,
    Severity,
    Span,
    from_json,
    json_lines,
    to_json,
)
from cake.diag.model import APPLICABILITIES

counts = st.integers(1, 10**6)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
facts = st.dictionaries(
    st.text(max_size=8),
    scalars
    | st.recursive(st.lists(scalars, max_size=3), lambda inner: st.lists(inner, max_size=3)),
    max_size=4,
)


@st.composite
def spans(draw: st.DrawFn) -> Span:
    (line, col), (end_line, end_col) = sorted(draw(st.tuples(*[st.tuples(counts, counts)] * 2)))
    return Span(file=draw(st.text()), line=line, col=col, end_line=end_line, end_col=end_col)


edits = st.builds(Edit, span=spans(), replacement=st.text())
fixes = st.builds(
    Fix,
    message=st.text(),
    applicability=st.sampled_from(APPLICABILITIES),
    edits=st.lists(edits, max_size=2).map(tuple),
)
related = st.builds(Related, span=spans(), message=st.text())
diagnostics = st.builds(
    Diagnostic,
    code=st.from_regex(r"CK[0-9]{3}", fullmatch=True),
    severity=st.sampled_from(Severity),
    stage=st.text(),
    message=st.text(),
    span=st.none() | spans(),
    label=st.none() | st.text(),
    related=st.lists(related, max_size=2).map(tuple),
    facts=facts,
    helps=st.lists(st.text(), max_size=2).map(tuple),
    fix=st.none() | fixes,
)


@given(st.lists(diagnostics, max_size=3))
def test_json_lines_round_trip(found: list[Diagnostic]) -> None:
    text = json_lines(found)
    read = [from_json(json.loads(line)) for line in text.splitlines()]
    assert read == found
    assert [again.fingerprint for again in read] == [once.fingerprint for once in found]


def example() -> Diagnostic:
    place = Span(file="a.py", line=1, col=2, end_line=3, end_col=4)
    return Diagnostic.of(
        "CK412",
        "message",
        place,
        label="here",
        related=(Related(span=place, message="there"),),
        facts={"stages": 3, "roles": ["load", "math"]},
        helps=("help",),
        fix=Fix(message="fix", applicability="unsafe", edits=(Edit(span=place, replacement="x"),)),
    )


def test_the_form_agents_read() -> None:
    place = {"file": "a.py", "line": 1, "col": 2, "end_line": 3, "end_col": 4}
    assert to_json(example()) == {
        "code": "CK412",
        "name": "ring-reuse-before-release",
        "severity": "error",
        "stage": "verify",
        "message": "message",
        "span": place,
        "label": "here",
        "related": [{"span": place, "message": "there"}],
        "facts": {"stages": 3, "roles": ["load", "math"]},
        "helps": ["help"],
        "fix": {
            "message": "fix",
            "applicability": "unsafe",
            "edits": [{"span": place, "replacement": "x"}],
        },
        "fingerprint": example().fingerprint,
    }


def test_what_is_absent_is_null() -> None:
    record = to_json(Diagnostic.of("CK901", "no driver"))
    assert (record["span"], record["label"], record["fix"]) == (None, None, None)


@pytest.mark.parametrize("field", ["code", "severity", "span", "facts", "fix"])
def test_a_record_without_a_field_is_refused_by_its_name(field: str) -> None:
    record = to_json(example())
    del record[field]
    with pytest.raises(ValueError, match=field):
        from_json(record)


@pytest.mark.parametrize(
    "change",
    [
        {"severity": "fatal"},
        {"span": {"file": "a.py", "line": 0, "col": 1, "end_line": 1, "end_col": 1}},
        {"span": {"file": "a.py"}},
        {"span": "a.py:1:1"},
        {"facts": [1]},
        {"fix": {"message": "m", "applicability": "maybe", "edits": []}},
        {"related": None},
    ],
)
def test_a_record_with_a_malformed_field_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"."):
        from_json(to_json(example()) | change)
