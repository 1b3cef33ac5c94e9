import pickle
import random
from pathlib import Path

import pytest

from cake.diag import CakeError, Diagnostic, Diagnostics, Related, Span


def at(line: int, col: int = 1, *, file: str = "a.py") -> Span:
    return Span(file=file, line=line, col=col, end_line=line, end_col=col + 1)


def test_findings_come_in_source_order_and_those_without_a_place_last() -> None:
    ordered = [
        Diagnostic.of("CK412", "m", at(2, 9)),
        Diagnostic.of("CK340", "m", at(10, 1)),
        Diagnostic.of("CK412", "m", at(10, 1)),
        Diagnostic.of("CK412", "m", at(10, 4)),
        Diagnostic.of("CK412", "m", at(1, 1, file="b.py")),
        Diagnostic.of("CK412", "m"),
    ]
    shuffled = random.Random(0).sample(ordered, len(ordered))
    assert list(Diagnostics(shuffled)) == ordered


def test_repeats_at_one_place_are_merged() -> None:
    here = Related(span=at(7), message="read here")
    there = Related(span=at(8), message="and here")
    found = Diagnostics()
    found.add(Diagnostic.of("CK412", "slot 0", at(3), related=(here,), helps=("a",)))
    found.add(Diagnostic.of("CK412", "slot 1", at(3), related=(here, there), helps=("b",)))
    assert list(found) == [
        Diagnostic.of("CK412", "slot 0", at(3), related=(here, there), helps=("a", "b"))
    ]
    assert len(found) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"code": "CK412", "message": "m", "span": at(4)},
        {"code": "CK340", "message": "m", "span": at(3)},
        {"code": "CK412", "message": "other", "span": at(3)},
    ],
)
def test_findings_that_differ_in_place_code_or_message_are_kept_apart(
    other: dict[str, object],
) -> None:
    found = Diagnostics([Diagnostic.of("CK412", "m", at(3))])
    found.extend([Diagnostic.of(**other)])  # type: ignore[arg-type]
    assert len(found) == 2


def test_warnings_and_notes_are_no_errors() -> None:
    found = Diagnostics([Diagnostic.of("CK340", "w", at(1)), Diagnostic.of("CK901", "n")])
    assert not found.has_errors
    assert found.errors == ()
    found.raise_if_errors()


def test_errors_are_told_from_the_rest() -> None:
    error = Diagnostic.of("CK412", "e", at(2))
    found = Diagnostics([Diagnostic.of("CK340", "w", at(1)), error])
    assert found.has_errors
    assert found.errors == (error,)


def test_raise_if_errors_carries_all_findings_in_order() -> None:
    found = Diagnostics([Diagnostic.of("CK412", "e", at(2)), Diagnostic.of("CK340", "w", at(1))])
    with pytest.raises(CakeError) as caught:
        found.raise_if_errors()
    assert caught.value.diagnostics == tuple(found)


def test_the_exception_prints_its_findings_with_the_sources_it_has(tmp_path: Path) -> None:
    path = tmp_path / "on_disk.py"
    path.write_text("first\nsecond\n")
    error = CakeError(
        [
            Diagnostic.of("CK412", "in memory", at(1, file="<string>")),
            Diagnostic.of("CK412", "on disk", at(2, file=str(path))),
            Diagnostic.of("CK412", "nowhere", at(2, file="missing\0.py")),
        ],
        {"<string>": "x = 1"},
    )
    text = str(error)
    assert "1 | x = 1\n  | ^\n" in text
    assert "2 | second\n  | ^\n" in text
    assert " --> missing\N{SYMBOL FOR NULL}.py:2:1\n" in text
    assert text.count("\n\nerror[CK412]") == 2


def test_the_exception_survives_pickling() -> None:
    error = CakeError([Diagnostic.of("CK412", "m", at(1, file="<s>"))], {"<s>": "x = 1"})
    copy = pickle.loads(pickle.dumps(error))
    assert copy.diagnostics == error.diagnostics
    assert str(copy) == str(error)
