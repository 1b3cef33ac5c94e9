import dataclasses
import math
import pickle
from typing import Any

import numpy as np
import pytest

from cake.diag import (
    Code,
    Diagnostic,
    Edit,
    Fact,
    Fix,
    Related,
    Severity,
    Span,
    UnknownCodeError,
    lookup,
)


def span(line: int = 3, col: int = 5, *, file: str = "a.py", width: int = 4) -> Span:
    return Span(file=file, line=line, col=col, end_line=line, end_col=col + width)


@pytest.mark.parametrize(
    "place",
    [
        {"line": 0, "col": 1, "end_line": 1, "end_col": 1},
        {"line": 1, "col": 0, "end_line": 1, "end_col": 1},
        {"line": 2, "col": 1, "end_line": 1, "end_col": 9},
        {"line": 1, "col": 5, "end_line": 1, "end_col": 4},
    ],
)
def test_a_span_outside_the_text_or_ending_before_its_start_is_refused(
    place: dict[str, int],
) -> None:
    with pytest.raises(ValueError, match=r"a\.py"):
        Span(file="a.py", **place)


def test_of_takes_severity_and_stage_from_the_catalogue() -> None:
    for code in ("CK340", "bank-conflict", lookup("CK340")):
        found = Diagnostic.of(code, "4-way bank conflict", span())
        assert (found.code, found.severity, found.stage) == ("CK340", Severity.WARNING, "verify")
        assert found.name == "bank-conflict"


def test_of_refuses_an_undefined_code() -> None:
    with pytest.raises(UnknownCodeError):
        Diagnostic.of("CK555", "message", None)


def test_a_code_of_another_version_is_its_own_name() -> None:
    found = Diagnostic(code="CK555", severity=Severity.NOTE, stage="verify", message="old")
    assert found.name == "CK555"


def test_facts_become_plain_values() -> None:
    int64: Any = np.int64(4)  # not an int, unlike float64 a float
    facts: dict[str, Fact] = {
        "shape": (2, (3, int64)),
        "nan": math.nan,
        "low": -math.inf,
        "x": np.float64(2),
    }
    found = Diagnostic.of("CK412", "message", None, facts=facts)
    assert found.facts == {"shape": [2, [3, 4]], "nan": "nan", "low": "-inf", "x": 2.0}
    assert type(found.facts["x"]) is float


def test_facts_are_copied() -> None:
    facts = {"slot": 1}
    found = Diagnostic.of("CK412", "message", None, facts=facts)
    facts["slot"] = 2
    assert found.facts == {"slot": 1}


def test_a_fact_that_is_no_json_value_is_refused_by_name() -> None:
    with pytest.raises(TypeError, match="fact 'where' is a Span"):
        Diagnostic.of("CK412", "message", None, facts={"where": span()})  # type: ignore[dict-item]


def test_an_unknown_applicability_is_refused() -> None:
    with pytest.raises(ValueError, match="'maybe' is not one of safe, unsafe, display-only"):
        Fix(message="m", applicability="maybe", edits=())  # type: ignore[arg-type]


def test_a_diagnostic_is_frozen_hashable_and_survives_pickling() -> None:
    found = Diagnostic.of(
        "CK412",
        "message",
        span(),
        facts={"slots": [1, 2]},
        related=(Related(span=span(9), message="here"),),
        fix=Fix(message="m", applicability="safe", edits=(Edit(span=span(), replacement=""),)),
    )
    assert pickle.loads(pickle.dumps(found)) == found
    assert len({found, dataclasses.replace(found)}) == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.message = "other"  # type: ignore[misc]


class TestFingerprint:
    def of(self, message: str, code: str | Code = "CK412", **kw: object) -> str:
        return Diagnostic.of(code, message, **kw).fingerprint  # type: ignore[arg-type]

    def test_is_the_same_at_another_place_or_in_another_file(self) -> None:
        here = self.of("slot reused", span=span(3))
        assert (
            here == self.of("slot reused", span=span(90, 1, file="b.py")) == self.of("slot reused")
        )

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("needs 234,496 bytes, limit 232448", "needs 1 bytes, limit 5"),
            ("tile is 64x128", "tile is 128x64x2"),
            ("address 0x1f00 is odd", "address 12 is odd"),
            ("off by -1", "off by 2.5e-3"),
            ("slots (0, 1)", "slots (2, 3)"),
            ("takes 200KiB", "takes 96KiB"),
        ],
    )
    def test_is_the_same_for_other_figures(self, one: str, other: str) -> None:
        assert self.of(one) == self.of(other)

    @pytest.mark.parametrize(
        ("one", "other"),
        [
            ("ring `c1` is full", "ring `c2` is full"),
            ("no form for bf16", "no form for bf8"),
            ("m64n128k16 is not admitted", "m64n256k16 is not admitted"),
            ("target sm_90a", "target sm_80"),
        ],
    )
    def test_differs_for_another_name_that_holds_digits(self, one: str, other: str) -> None:
        assert self.of(one) != self.of(other)

    def test_differs_between_codes(self) -> None:
        assert self.of("message", "CK412") != self.of("message", "CK340")

    @pytest.mark.parametrize("name", ["function", "role", "roles"])
    def test_differs_between_functions_and_roles(self, name: str) -> None:
        assert self.of("m", facts={name: "load"}) != self.of("m", facts={name: "math"})

    def test_does_not_depend_on_other_facts_or_on_the_remedy(self) -> None:
        plain = self.of("m")
        assert plain == self.of(
            "m", facts={"bytes": 7, "file": "b.py"}, helps=("do it",), label="x"
        )

    def test_is_stable_across_versions(self) -> None:
        # Stored in the evidence of earlier runs: a change here makes old findings look new.
        assert self.of("slot 3 of ring `cs`", facts={"role": "load"}) == "a2178dc85b4af262"
