import pytest

from cake.diag import Edit, Fix, Span, apply_edits
from cake.diag.model import Applicability

SOURCE = "first line\nsecond line\n\tthird"


def edit(
    start: tuple[int, int], end: tuple[int, int], replacement: str, *, file: str = "a.py"
) -> Edit:
    place = Span(file=file, line=start[0], col=start[1], end_line=end[0], end_col=end[1])
    return Edit(span=place, replacement=replacement)


def fix(*edits: Edit, applicability: Applicability = "safe") -> Fix:
    return Fix(message="do it", applicability=applicability, edits=edits)


def test_replaces_inserts_and_deletes_in_any_order() -> None:
    fixes = [
        fix(edit((3, 2), (3, 7), "3rd")),
        fix(edit((1, 1), (1, 1), "the "), edit((2, 7), (2, 12), "")),
    ]
    assert apply_edits(SOURCE, fixes) == "the first line\nsecond\n\t3rd"


def test_an_edit_may_span_lines() -> None:
    assert apply_edits(SOURCE, [fix(edit((1, 6), (3, 2), " "))]) == "first third"


def test_line_ends_and_characters_outside_ascii_are_kept() -> None:
    assert apply_edits("é = 1\r\nβ = 2\r\n", [fix(edit((2, 5), (2, 6), "3"))]) == (
        "é = 1\r\nβ = 3\r\n"
    )


def test_an_insertion_after_the_last_character_is_inside() -> None:
    assert apply_edits("a", [fix(edit((1, 2), (1, 2), "b"))]) == "ab"


def test_edits_that_touch_do_not_overlap() -> None:
    fixes = [fix(edit((1, 1), (1, 6), "1st")), fix(edit((1, 6), (1, 6), "!"))]
    assert apply_edits(SOURCE, fixes).startswith("1st! line")


def test_an_edit_shared_by_fixes_is_made_once() -> None:
    shared = edit((1, 1), (1, 1), "the ")
    assert apply_edits(SOURCE, [fix(shared), fix(shared)]).startswith("the first")


def test_without_fixes_nothing_changes() -> None:
    assert apply_edits(SOURCE, []) == SOURCE


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (edit((1, 1), (1, 6), "a"), edit((1, 5), (1, 8), "b")),
        (edit((1, 1), (2, 3), "a"), edit((1, 9), (1, 9), "b")),
        (edit((1, 3), (1, 3), "a"), edit((1, 3), (1, 3), "b")),
        (edit((1, 1), (1, 6), "a"), edit((1, 1), (1, 6), "b")),
    ],
)
def test_overlapping_edits_are_refused_with_both_places(one: Edit, other: Edit) -> None:
    with pytest.raises(ValueError, match=r"overlap: a\.py:1:\d.* and a\.py:1:\d"):
        apply_edits(SOURCE, [fix(one), fix(other)])


@pytest.mark.parametrize("end", [(4, 1), (1, 12)])
def test_an_edit_outside_the_source_is_refused(end: tuple[int, int]) -> None:
    with pytest.raises(ValueError, match=r"lies outside the source \(3 lines\)"):
        apply_edits(SOURCE, [fix(edit((1, 1), end, ""))])


def test_edits_of_several_files_are_refused() -> None:
    fixes = [fix(edit((1, 1), (1, 1), "x")), fix(edit((1, 1), (1, 1), "x", file="b.py"))]
    with pytest.raises(ValueError, match=r"several files \(a\.py, b\.py\)"):
        apply_edits(SOURCE, fixes)


def test_a_display_only_fix_is_refused() -> None:
    shown = fix(edit((1, 1), (1, 1), "x"), applicability="display-only")
    with pytest.raises(ValueError, match="display-only"):
        apply_edits(SOURCE, [shown])
