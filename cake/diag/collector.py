"""Gathering all findings of a run, and the exception that carries them."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from cake.diag.catalogue import Severity
from cake.diag.model import Diagnostic, Span
from cake.diag.render import render_text


class Diagnostics:
    """A collection of findings that iterates in source order.

    A finding with the fingerprint and span of an earlier one is merged into it: the first one's
    message and facts stay, related places and helps that are new are added. Findings without a
    span come last.
    """

    def __init__(self, diagnostics: Iterable[Diagnostic] = ()) -> None:
        self._found: dict[tuple[str, Span | None], Diagnostic] = {}
        self.extend(diagnostics)

    def add(self, diagnostic: Diagnostic) -> None:
        """Add one finding, merging it with an equal earlier one."""
        key = (diagnostic.fingerprint, diagnostic.span)
        first = self._found.get(key)
        self._found[key] = diagnostic if first is None else _merge(first, diagnostic)

    def extend(self, diagnostics: Iterable[Diagnostic]) -> None:
        """Add several findings."""
        for diagnostic in diagnostics:
            self.add(diagnostic)

    def __iter__(self) -> Iterator[Diagnostic]:
        return iter(sorted(self._found.values(), key=_source_order))

    def __len__(self) -> int:
        return len(self._found)

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        """The findings of severity error, in source order."""
        return tuple(found for found in self if found.severity is Severity.ERROR)

    @property
    def has_errors(self) -> bool:
        """Whether any finding is an error."""
        return any(found.severity is Severity.ERROR for found in self._found.values())

    def raise_if_errors(self, sources: Mapping[str, str] | None = None) -> None:
        """Raise ``CakeError`` with all findings, warnings included, if one of them is an error."""
        if self.has_errors:
            raise CakeError(self, sources)


class CakeError(Exception):
    """Work ended because of findings; ``diagnostics`` holds them and ``str`` prints them.

    ``sources`` maps the file names of spans to their text, for programs that do not come from a
    file; other files are read when the error is printed.
    """

    def __init__(
        self, diagnostics: Iterable[Diagnostic], sources: Mapping[str, str] | None = None
    ) -> None:
        self.diagnostics = tuple(diagnostics)
        self.sources = dict(sources or {})
        # Exceptions are pickled through args; worker processes hand these over.
        super().__init__(self.diagnostics, self.sources)

    def __str__(self) -> str:
        texts = (render_text(found, self._source, color=False) for found in self.diagnostics)
        return "\n\n".join(texts)

    def _source(self, file: str) -> str | None:
        if file in self.sources:
            return self.sources[file]
        try:
            return Path(file).read_text(encoding="utf-8", errors="replace")
        except (OSError, ValueError):  # ValueError: a name with a null character
            return None


def _merge(first: Diagnostic, again: Diagnostic) -> Diagnostic:
    return replace(
        first,
        related=tuple(dict.fromkeys(first.related + again.related)),
        helps=tuple(dict.fromkeys(first.helps + again.helps)),
    )


def _source_order(diagnostic: Diagnostic) -> tuple[bool, tuple[str, int, int], str]:
    span = diagnostic.span
    place = ("", 0, 0) if span is None else (span.file, span.line, span.col)
    return span is None, place, diagnostic.code
