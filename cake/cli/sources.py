"""Schedule files as commands read them: text, programs, verdicts."""

from __future__ import annotations

import ast
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import click

from cake.cli.findings import NOT_TEXT, UNREADABLE
from cake.cli.status import Failure, Status
from cake.diag import Diagnostic, Span
from cake.ir.program import Program
from cake.lang import codes
from cake.lang.elaborate import Parsed, parse
from cake.verify import verify
from cake.verify.rule import Level

STDIN = "<stdin>"

MAX_BYTES = 8 << 20
"""Of a schedule file: far above any, and little enough to read a device that never ends."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """The text of a schedule file and the name that places have."""

    file: str
    text: str

    @property
    def sources(self) -> Mapping[str, str]:
        """For rendering findings."""
        return {self.file: self.text}

    def schedule_names(self) -> tuple[str, ...]:
        """The schedules that the file holds, whether or not they elaborate."""
        try:
            body = ast.parse(self.text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ()
        return tuple(
            f.name
            for f in body
            if isinstance(f, ast.FunctionDef)
            and any(".schedule(" in ast.unparse(d) for d in f.decorator_list)
        )


def read(file: str) -> Text:
    """The text of ``file`` (``-``: standard input).

    Raises :class:`Failure`: wrong use for a file that is not there or is a folder, environment for
    one that cannot be read, rejected for one that is too large or not UTF-8.
    """
    name = STDIN if file == "-" else file
    try:
        with nullcontext(sys.stdin.buffer) if file == "-" else open(file, "rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, IsADirectoryError, NotADirectoryError, ValueError) as error:
        raise _unreadable(file, error, Status.USAGE) from None
    except OSError as error:
        raise _unreadable(file, error, Status.ENVIRONMENT) from None
    if len(raw) > MAX_BYTES:
        raise Failure(Status.REJECTED, _too_large(name))
    try:
        return Text(file=name, text=raw.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise Failure(Status.REJECTED, _not_text(name, raw, error)) from None


def _unreadable(file: str, error: Exception, status: Status) -> Failure:
    reason = (error.strerror if isinstance(error, OSError) else None) or str(error)
    finding = Diagnostic.of(
        UNREADABLE, f"cannot read {file}: {reason}", facts={"path": file, "reason": reason}
    )
    return Failure(status, finding)


def _too_large(file: str) -> Diagnostic:
    message = f"{file} has more than {MAX_BYTES} bytes, which no schedule has"
    return Diagnostic.of(codes.TOO_LARGE, message, facts={"limit": MAX_BYTES})


def _not_text(file: str, raw: bytes, error: UnicodeDecodeError) -> Diagnostic:
    before = raw[: error.start]
    line = before.count(b"\n") + 1
    col = len(before.rpartition(b"\n")[2].decode("utf-8", "replace")) + 1
    span = Span(file=file, line=line, col=col, end_line=line, end_col=col + 1)
    what = "a binary file" if b"\0" in raw else "not UTF-8 text"
    return Diagnostic.of(
        NOT_TEXT,
        f"{file} is {what}: byte 0x{raw[error.start]:02x} at offset {error.start}",
        span,
        facts={"offset": error.start, "byte": raw[error.start]},
    )


def elaborate(text: Text, meta: Mapping[str, Any], target: str | None) -> Parsed:
    """Parse, for any number of schedules.

    Raises :class:`click.UsageError` for a meta parameter that does not exist or does not take the
    value: the command line is wrong then, not the file.
    """
    parsed = parse(text.text, text.file, meta=meta, target=target)
    for found in parsed.diagnostics:
        if found.code == codes.META_DOMAIN and found.facts.get("name") in meta:
            raise click.UsageError(f"--meta: {found.message}")
    return parsed


def programs(text: Text, meta: Mapping[str, Any], target: str | None) -> tuple[Program, ...]:
    """The programs of a file without errors; raises :class:`Failure` with all of them else."""
    parsed = elaborate(text, meta, target)
    if not parsed.ok:
        raise Failure(Status.REJECTED, *parsed.diagnostics, sources=text.sources)
    return parsed.programs


def chosen(found: tuple[Program, ...], name: str | None) -> tuple[Program, ...]:
    """All programs, or the one called ``name``; raises :class:`click.UsageError` without it."""
    if name is None:
        return found
    if picked := tuple(p for p in found if p.name == name):
        return picked
    listed = ", ".join(p.name for p in found)
    raise click.UsageError(f"--schedule: there is no schedule {name} (there are {listed})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """Programs against which nothing speaks, and what was found all the same."""

    programs: tuple[Program, ...]
    diagnostics: tuple[Diagnostic, ...]
    status: Status


def checked(text: Text, meta: Mapping[str, Any], target: str | None, level: Level) -> Checked:
    """The programs of a file after the verifier; raises :class:`Failure` for a rejected file."""
    found = programs(text, meta, target)
    verdicts = [verify(program, level=level) for program in found]
    diagnostics = tuple(d for verdict in verdicts for d in verdict.diagnostics)
    if any(verdict.status == "rejected" for verdict in verdicts):
        raise Failure(Status.REJECTED, *diagnostics, sources=text.sources)
    complete = all(verdict.status == "accepted" for verdict in verdicts)
    status = Status.ACCEPTED if complete else Status.INCOMPLETE
    return Checked(programs=found, diagnostics=diagnostics, status=status)
