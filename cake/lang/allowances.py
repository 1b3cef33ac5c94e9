"""Findings that an author accepts: ``# cake: allow CK328 because ...`` in a schedule's text."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import replace

from cake.diag import Diagnostic, Diagnostics, Span
from cake.ir.program import Allowance
from cake.lang import codes
from cake.lang.scope import Source, place

_ADDRESSED = re.compile(r"#\s*cake:\s*(.*)")
_ALLOW = re.compile(r"allow\s+(CK\d{3})\s+because\s+(\S.*)")
_BETWEEN = {tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT}


def allowances(
    source: Source, diagnostics: Diagnostics, schedules: list[ast.FunctionDef]
) -> dict[str, tuple[Allowance, ...]]:
    """The allowances of each schedule of a file, by its name; those outside count for all."""
    found = list(_read(source, diagnostics))
    owner = {a: f.name for a in found for f in schedules if _holds(f, a)}
    return {
        f.name: tuple(
            replace(a, shared=a not in owner, last=max(a.last, _head(f, a)))
            for a in found
            if owner.get(a, f.name) == f.name
        )
        for f in schedules
    }


def _holds(f: ast.FunctionDef, a: Allowance) -> bool:
    """Whether an allowance stands in a schedule, or is about its decorator or head."""
    return _decorator(f) <= a.line <= (f.end_lineno or f.lineno)


def _head(f: ast.FunctionDef, a: Allowance) -> int:
    """The line of ``def`` for an allowance above the decorator, else 0."""
    return f.lineno if _decorator(f) <= a.line < f.lineno else 0


def _decorator(f: ast.FunctionDef) -> int:
    return min(d.lineno for d in f.decorator_list)


def _read(source: Source, diagnostics: Diagnostics) -> Iterator[Allowance]:
    if not _ADDRESSED.search(source.text):
        return
    tokens = list(tokenize.generate_tokens(io.StringIO(source.text).readline))
    within = False
    for i, token in enumerate(tokens):
        if token.type not in _BETWEEN:
            within = token.type != tokenize.NEWLINE
        addressed = _ADDRESSED.match(token.string) if token.type == tokenize.COMMENT else None
        if addressed is None:
            continue
        line, col = token.start
        loc = place(source.file, line, col + 1, col + 1 + len(token.string))
        found = _ALLOW.fullmatch(addressed[1].rstrip())
        if found is None:
            diagnostics.add(_malformed(token.string, loc))
            continue
        last = line
        if not token.line[:col].strip():
            line, last = _following(tokens[i:], within)
        yield Allowance(code=found[1], reason=found[2], line=line, last=last, shared=False, loc=loc)


def _following(tokens: list[tokenize.TokenInfo], within: bool) -> tuple[int, int]:
    """The lines that a comment on a line of its own is about: the next line ``within`` a statement,
    else all lines of the next statement, or of its head."""
    code = [t for t in tokens if t.type not in _BETWEEN]
    first = code[0].start[0]
    if within:
        return first, first
    return first, next((t.start[0] for t in code if t.type == tokenize.NEWLINE), first)


def _malformed(comment: str, loc: Span) -> Diagnostic:
    return Diagnostic.of(
        codes.BAD_ALLOWANCE,
        f"`{comment}` is no allowance with a code and a reason",
        loc,
        helps=("write `# cake: allow CK328 because REASON`",),
    )
