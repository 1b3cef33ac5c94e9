"""Diagnostics as text for people, in the manner of rustc::

error[CK412]: slot of ring `cs` is overwritten while `math` may read it  (ring-reuse)
  --> assign.py:31:21
31 |                     tma_load(C[s], c[b, k * BN, 0])
   |                     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^ writes slot 0 in step 3
  ::: assign.py:44:25   `math` reads slot 0 of step 0 here
   = help: give the ring one more stage
   = explain: cake explain CK412
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from cake.diag.catalogue import Severity
from cake.diag.cells import ShownLine, printable, show_line
from cake.diag.model import Diagnostic, Span
from cake.diag.source import split_lines

Sources: TypeAlias = Mapping[str, str] | Callable[[str], str | None]

_SEVERITY_STYLES = {Severity.ERROR: "1;31", Severity.WARNING: "1;33", Severity.NOTE: "1;36"}
_FRAME_STYLE = "1;34"
_MESSAGE_STYLE = "1"


def render_text(diagnostic: Diagnostic, sources: Sources, *, color: bool) -> str:
    """One finding as lines of text, without a newline at the end.

    ``sources`` gives the text of a file by the name that spans use, as a mapping or as a function
    that returns ``None`` for a file that it lacks. Without the text, or when the span starts or
    ends outside it, the place is named and no line is shown. A span of several lines is shown by
    its first and last. ``color`` adds ANSI colours.
    """
    return _Printer(diagnostic, color=color).text(sources)


def render_all(diagnostics: Iterable[Diagnostic], sources: Sources, *, color: bool) -> str:
    """Every finding as by ``render_text`` with a blank line after it, then the summary line."""
    found = list(diagnostics)
    texts = [render_text(diagnostic, sources, color=color) for diagnostic in found]
    return "\n\n".join([*texts, summary_line(found)])


def summary_line(diagnostics: Iterable[Diagnostic]) -> str:
    """How many findings of each severity there are: ``2 errors, 1 note``, or ``no findings``."""
    counts = Counter(diagnostic.severity for diagnostic in diagnostics)
    parts = [
        f"{counts[severity]} {severity.value}{'s' if counts[severity] > 1 else ''}"
        for severity in Severity
        if counts[severity]
    ]
    return ", ".join(parts) or "no findings"


class _Printer:
    def __init__(self, diagnostic: Diagnostic, *, color: bool) -> None:
        self.found = diagnostic
        self.color = color
        # Everything but the header stands right of the column of line numbers.
        last_line = _last_place(diagnostic.span)[0] if diagnostic.span else 1
        self.margin = " " * len(str(last_line))

    def text(self, sources: Sources) -> str:
        found = self.found
        lines = [self._header()]
        if found.span:
            lines += self._place(found.span, _one_line(found.label or ""), sources)
        lines += [
            self._arrow(":::", related.span, _one_line(related.message))
            for related in found.related
        ]
        lines += [self._note("help", text) for text in found.helps]
        if found.fix:
            lines.append(self._note(f"fix ({found.fix.applicability})", found.fix.message))
        lines.append(self._note("explain", f"cake explain {found.code}"))
        return "\n".join(lines)

    def _header(self) -> str:
        found = self.found
        head = self._severity(f"{found.severity.value}[{found.code}]")
        message = self._paint(f": {printable(found.message)}", _MESSAGE_STYLE)
        return f"{head}{message}  ({found.name})"

    def _place(self, span: Span, label: str, sources: Sources) -> list[str]:
        marked = _marked_lines(span, sources)
        if not marked:
            return [self._arrow("-->", span, label)]
        lines = [self._arrow("-->", span, "")]
        previous = span.line
        for number, line in marked.items():
            if number > previous + 1:
                lines.append("...")
            previous = number
            bar = self._paint(f"{number:>{len(self.margin)}} |", _FRAME_STYLE)
            lines.append(f"{bar} {line.text}".rstrip())
            carets = " " * line.start + self._severity("^" * (line.end - line.start))
            lines.append(f"{self.margin} {self._paint('|', _FRAME_STYLE)} {carets}")
        if label:
            lines[-1] += " " + self._severity(label)
        return lines

    def _arrow(self, arrow: str, span: Span, text: str) -> str:
        place = f"{printable(span.file)}:{span.line}:{span.col}"
        line = f"{self.margin}{self._paint(arrow, _FRAME_STYLE)} {place}"
        return f"{line}   {text}" if text else line

    def _note(self, kind: str, text: str) -> str:
        lead = f"{self.margin} {self._paint('=', _FRAME_STYLE)} {self._paint(kind, _MESSAGE_STYLE)}"
        continuation = " " * (len(self.margin) + len(f" = {kind}: "))
        return f"{lead}: " + printable(text).replace("\n", f"\n{continuation}")

    def _severity(self, text: str) -> str:
        return self._paint(text, _SEVERITY_STYLES[self.found.severity])

    def _paint(self, text: str, style: str) -> str:
        return f"\x1b[{style}m{text}\x1b[0m" if self.color else text


def _one_line(text: str) -> str:
    return printable(text).replace("\n", " ")


def _last_place(span: Span) -> tuple[int, int | None]:
    """The last line of a span and the exclusive column at which it ends there.

    A span that ends before the first character of a line ends with the line before, whose length
    is not known here: then the column is ``None``.
    """
    if span.end_col == 1 and span.end_line > span.line:
        return span.end_line - 1, None
    return span.end_line, span.end_col


def _marked_lines(span: Span, sources: Sources) -> dict[int, ShownLine]:
    """The first and the last line of a span, by number; empty if the source lacks them."""
    source = sources(span.file) if callable(sources) else sources.get(span.file)
    if source is None:
        return {}
    lines = split_lines(source)
    last, end_col = _last_place(span)
    if last > len(lines):
        return {}
    marked = {}
    for number in (span.line, last):
        line = lines[number - 1]
        indent = len(line) - len(line.lstrip())
        first_char = span.col - 1 if number == span.line else indent
        last_char = end_col - 1 if number == last and end_col else len(line.rstrip())
        marked[number] = show_line(line, first_char, last_char)
    return marked
