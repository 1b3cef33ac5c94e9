"""Golden texts: each test states the whole output."""

import re
from textwrap import dedent

import pytest

from cake.diag import (
    Diagnostic,
    Edit,
    Fix,
    Related,
    Span,
    render_all,
    render_text,
    summary_line,
)

EVERY_PART = """\
error[CK412]: slot of ring `cs` is overwritten while `math` may still read it  \
(ring-reuse-before-release)
  --> assign.py:31:21
31 |                     tma_load(C[s], c[b, k * BN, 0])
   |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ writes slot 0 in step 3
  ::: assign.py:44:25   `math` reads slot 0 of step 0 here; wgmma_wait(1) leaves it in flight
   = help: release after wgmma_wait(0), or give the ring one more stage
   = fix (safe): give ring `cs` 4 stages
   = explain: cake explain CK412
"""

KERNEL = "\n" * 30 + "                    tma_load(C[s], c[b, k * BN, 0])\n"


def span(start: tuple[int, int], end: tuple[int, int], file: str = "assign.py") -> Span:
    return Span(file=file, line=start[0], col=start[1], end_line=end[0], end_col=end[1])


def text(found: Diagnostic, source: str, file: str = "assign.py") -> str:
    return render_text(found, {file: source}, color=False) + "\n"


def snippet(source: str, place: Span, label: str | None = None) -> list[str]:
    """The lines between the arrow and the notes."""
    found = Diagnostic.of("CK412", "m", place, label=label)
    return text(found, source).split("\n")[2:-2]


def test_every_part_in_order() -> None:
    found = Diagnostic.of(
        "CK412",
        "slot of ring `cs` is overwritten while `math` may still read it",
        span((31, 21), (31, 52)),
        label="writes slot 0 in step 3",
        related=(
            Related(
                span=span((44, 25), (44, 36)),
                message="`math` reads slot 0 of step 0 here; wgmma_wait(1) leaves it in flight",
            ),
        ),
        facts={"slot": 0},
        helps=("release after wgmma_wait(0), or give the ring one more stage",),
        fix=Fix(
            message="give ring `cs` 4 stages",
            applicability="safe",
            edits=(Edit(span=span((12, 9), (12, 10)), replacement="4"),),
        ),
    )
    assert text(found, KERNEL) == EVERY_PART


def test_without_a_place() -> None:
    found = Diagnostic.of("CK901", "libcuda.so.1 is not installed", helps=("install a driver",))
    assert text(found, "") == dedent("""\
        note[CK901]: libcuda.so.1 is not installed  (no-driver)
          = help: install a driver
          = explain: cake explain CK901
        """)


@pytest.mark.parametrize("sources", [{}, {"assign.py": "one\ntwo"}, lambda file: None])
def test_a_missing_source_or_line_leaves_the_place_and_the_label(sources: object) -> None:
    found = Diagnostic.of("CK340", "8-way conflict", span((31, 5), (31, 9)), label="read here")
    assert render_text(found, sources, color=False) == (  # type: ignore[arg-type]
        "warning[CK340]: 8-way conflict  (bank-conflict)\n"
        "  --> assign.py:31:5   read here\n"
        "   = explain: cake explain CK340"
    )


def test_sources_may_be_a_function_of_the_file() -> None:
    found = Diagnostic.of("CK340", "m", span((1, 1), (1, 10)))
    shown = render_text(found, lambda file: f"{file}!", color=False)
    assert "1 | assign.py!\n  | ^^^^^^^^^\n" in shown


def test_a_span_of_two_lines_marks_both() -> None:
    source = "with cs.use() as s:\n    release(s)  # soon\n"
    assert snippet(source, span((1, 6), (2, 15)), "held here") == [
        "1 | with cs.use() as s:",
        "  |      ^^^^^^^^^^^^^^",
        "2 |     release(s)  # soon",
        "  |     ^^^^^^^^^^ held here",
    ]


def test_a_span_of_many_lines_leaves_out_the_middle() -> None:
    source = "\n".join(f"line {number}" for number in range(1, 13))
    assert snippet(source, span((8, 1), (12, 8))) == [
        " 8 | line 8",
        "   | ^^^^^^",
        "...",
        "12 | line 12",
        "   | ^^^^^^^",
    ]


def test_a_span_that_ends_with_a_newline_ends_on_the_line_before() -> None:
    assert snippet("a = 1  \nb = 2", span((1, 1), (2, 1))) == [
        "1 | a = 1",
        "  | ^^^^^",
    ]


def test_an_empty_span_has_one_caret() -> None:
    assert snippet("", span((1, 1), (1, 1)), "nothing here") == ["1 |", "  | ^ nothing here"]


def test_a_column_behind_the_line_is_marked_at_its_end() -> None:
    assert snippet("abc", span((1, 9), (1, 12))) == ["1 | abc", "  |    ^"]


def test_tabs_have_a_fixed_width() -> None:
    assert snippet("\tx\t= y", span((1, 4), (1, 7))) == [
        "1 |     x    = y",
        "  |          ^^^",
    ]


@pytest.mark.parametrize(
    ("source", "carets"),
    [
        ("β = x", "    ^"),
        ("表 = x", "     ^"),
        ("é = x", "    ^"),
    ],
)
def test_carets_stand_under_the_text_whatever_its_width(source: str, carets: str) -> None:
    col = source.index("x") + 1
    assert snippet(source, span((1, col), (1, col + 1))) == [f"1 | {source}", f"  | {carets}"]


def test_lines_are_counted_as_the_parser_counts_them() -> None:
    source = "a\f\u2028a\r\nb\rc"
    assert snippet(source, span((3, 1), (3, 2))) == ["3 | c", "  | ^"]


def test_source_and_message_cannot_drive_the_terminal() -> None:
    found = Diagnostic.of(
        "CK412", "name \x1b[2J", span((1, 1), (1, 2)), label="a\x07\nb", helps=("\x9b\u202e",)
    )
    assert text(found, "x = '\x1b]0;\u202e\ud800'") == dedent("""\
        error[CK412]: name ␛[2J  (ring-reuse-before-release)
         --> assign.py:1:1
        1 | x = '␛]0;\ufffd\ufffd'
          | ^ a␇ b
          = help: \ufffd\ufffd
          = explain: cake explain CK412
        """)


def test_a_note_of_several_lines_is_aligned() -> None:
    found = Diagnostic.of("CK412", "m", helps=("first\nsecond",))
    assert "  = help: first\n          second\n" in text(found, "")


def test_a_very_long_line_is_cut_round_the_place() -> None:
    source = "a" * 5000 + "b" * 10 + "c" * 5000
    line, carets = snippet(source, span((1, 5001), (1, 5011)), "b")
    assert line == "1 | …" + "a" * 40 + "b" * 10 + "c" * 110 + "…"
    assert carets == "  | " + " " * 41 + "^" * 10 + " b"


def test_color_paints_and_changes_nothing_else() -> None:
    found = Diagnostic.of("CK412", "m", span((1, 1), (1, 3)), label="l", helps=("h",))
    painted = render_text(found, {"assign.py": "abc"}, color=True)
    plain = render_text(found, {"assign.py": "abc"}, color=False)
    assert "\x1b[1;31merror[CK412]\x1b[0m" in painted
    assert "\x1b[1;31m^^\x1b[0m" in painted
    assert re.sub(r"\x1b\[[0-9;]*m", "", painted) == plain
    assert "\x1b" not in plain


def test_the_summary_counts_by_severity() -> None:
    errors = [Diagnostic.of("CK412", "m")] * 2
    notes = [Diagnostic.of("CK901", "m")]
    assert summary_line([*notes, *errors]) == "2 errors, 1 note"
    assert summary_line([Diagnostic.of("CK340", "m")]) == "1 warning"
    assert summary_line([]) == "no findings"


def test_all_findings_are_followed_by_the_summary() -> None:
    found = [Diagnostic.of("CK901", "one"), Diagnostic.of("CK340", "two")]
    assert render_all(found, {}, color=False) == dedent("""\
        note[CK901]: one  (no-driver)
          = explain: cake explain CK901

        warning[CK340]: two  (bank-conflict)
          = explain: cake explain CK340

        1 warning, 1 note""")
