"""Carrying out the edits of fixes on a source text."""

from collections.abc import Iterable
from itertools import pairwise

from cake.diag.model import Edit, Fix
from cake.diag.source import line_starts, split_lines


def apply_edits(source: str, fixes: Iterable[Fix]) -> str:
    """``source`` with the edits of all ``fixes`` carried out.

    Spans refer to ``source`` as given. An edit that several fixes share is made once. Raises
    ``ValueError``, and changes nothing, for a display-only fix, edits of more than one file, a span
    outside the source, or edits that overlap (two different insertions at one place do).
    """
    located = _locate(source, _gather(fixes))
    pieces = []
    end_of_last = 0
    for start, end, edit in located:
        pieces += [source[end_of_last:start], edit.replacement]
        end_of_last = end
    return "".join([*pieces, source[end_of_last:]])


def _gather(fixes: Iterable[Fix]) -> list[Edit]:
    edits: dict[Edit, None] = {}
    for fix in fixes:
        if fix.applicability == "display-only":
            raise ValueError(f"fix {fix.message!r} is display-only: carry it out by hand")
        edits.update(dict.fromkeys(fix.edits))
    files = sorted({edit.span.file for edit in edits})
    if len(files) > 1:
        raise ValueError(f"edits of several files ({', '.join(files)}): apply them file by file")
    return list(edits)


def _locate(source: str, edits: list[Edit]) -> list[tuple[int, int, Edit]]:
    """The edits with start and end offsets, in order; raises ``ValueError`` if two overlap."""
    starts = line_starts(source)
    lengths = [len(line) for line in split_lines(source)]

    def offset(edit: Edit, line: int, col: int) -> int:
        if line > len(lengths) or col > lengths[line - 1] + 1:
            raise ValueError(f"edit at {edit.span} lies outside the source ({len(lengths)} lines)")
        return starts[line - 1] + col - 1

    located = [
        (
            offset(edit, edit.span.line, edit.span.col),
            offset(edit, edit.span.end_line, edit.span.end_col),
            edit,
        )
        for edit in edits
    ]
    located.sort(key=lambda item: item[:2])
    for (start, end, first), (next_start, next_end, second) in pairwise(located):
        if next_start < end or (start, end) == (next_start, next_end):
            raise ValueError(f"edits overlap: {first.span} and {second.span}")
    return located
