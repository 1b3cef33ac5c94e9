"""What commands print: text for people, or one JSON document for programs."""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import IO, Any, Protocol

import click

from cake.cli.status import Status
from cake.diag import Diagnostic, Sources, render_text, to_json

ALIKE = 5
"""So many findings of one code and message are shown in full."""


class Advance(Protocol):
    """Report progress: steps done since the last call, or ``done`` of ``total`` in all."""

    def __call__(
        self,
        text: str = "",
        *,
        steps: int = 1,
        done: int | None = None,
        total: int | None = None,
    ) -> None: ...


class Output:
    """Standard output of one command.

    With ``as_json`` everything but :meth:`finish` stays silent, and :meth:`finish` prints one
    document: ``command``, ``status``, the command's own entries, and ``diagnostics``.
    """

    def __init__(self, command: str, *, as_json: bool) -> None:
        self.command = command
        self.as_json = as_json

    def line(self, text: str = "", *, err: bool = False) -> None:
        """A line of text for people."""
        if not self.as_json:
            click.echo(text, err=err, color=None)

    def heading(self, text: str) -> None:
        """A line in bold."""
        self.line(_painted(text, "1", sys.stdout))

    def table(self, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        """Columns as wide as their widest cell; the last one is not padded."""
        cells = [[str(cell) for cell in row] for row in rows]
        if self.as_json or not cells:
            return
        widths = [max(len(row[i]) for row in [list(head), *cells]) for i in range(len(head))]
        for row in [list(head), *cells]:
            padded = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            text = "  ".join(padded).rstrip()
            self.heading(text) if row == list(head) else self.line(text)

    def findings(
        self, diagnostics: Sequence[Diagnostic], sources: Sources, *, err: bool = False
    ) -> None:
        """Each finding with its place, followed by a blank line; of many alike, a count."""
        stream = sys.stderr if err else sys.stdout
        alike = Counter[tuple[str, str]]()
        for found in diagnostics:
            alike[found.code, found.message] += 1
            if alike[found.code, found.message] <= ALIKE:
                self.line(render_text(found, sources, color=colored(stream)) + "\n", err=err)
        for (code, message), count in alike.items():
            if count > ALIKE:
                more = f"{count - ALIKE} more of {code}: {message} (--json lists all)"
                self.line(more + "\n", err=err)

    def finish(
        self,
        status: Status,
        entries: Mapping[str, Any] | None = None,
        diagnostics: Sequence[Diagnostic] = (),
    ) -> Status:
        """Print the document in JSON mode; returns ``status``."""
        if self.as_json:
            document = {
                "command": self.command,
                "status": status.word,
                **(entries or {}),
                "diagnostics": [to_json(found) for found in diagnostics],
            }
            click.echo(json.dumps(document, allow_nan=False))
        return status

    @contextmanager
    def progress(self, text: str, total: int | None = None) -> Iterator[Advance]:
        """A progress bar on standard error, or nothing where that is no terminal."""
        if self.as_json or not _terminal(sys.stderr):
            yield _silent
            return
        from rich.console import Console
        from rich.progress import Progress

        bar = Progress(console=Console(stderr=True), transient=True)
        task = bar.add_task(text, total=total)

        def advance(
            text: str = "",
            *,
            steps: int = 1,
            done: int | None = None,
            total: int | None = None,
        ) -> None:
            bar.update(task, description=text or None, completed=done, total=total)
            if done is None:
                bar.advance(task, steps)

        with bar:
            yield advance


def _silent(
    text: str = "", *, steps: int = 1, done: int | None = None, total: int | None = None
) -> None:
    """Progress that nobody looks at."""


def _terminal(stream: IO[str] | None) -> bool:
    return stream is not None and stream.isatty()


def colored(stream: IO[str] | None) -> bool:
    """Whether to colour text on ``stream``: a terminal that can, and no NO_COLOR (no-color.org)."""
    plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return _terminal(stream) and not plain


def _painted(text: str, style: str, stream: IO[str] | None) -> str:
    return f"\x1b[{style}m{text}\x1b[0m" if colored(stream) else text
