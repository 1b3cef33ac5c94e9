"""Running the examples of rules: from a schedule's text to its verdict."""

from __future__ import annotations

from cake.ir.program import Program
from cake.lang.elaborate import parse
from cake.verify import Verdict, verify
from cake.verify.rule import Level


def programs(text: str) -> tuple[Program, ...]:
    """The programs of a schedule text; an example must elaborate without findings."""
    parsed = parse(text, "example.py")
    assert parsed.ok, "\n".join(f"{d.span}: {d.message}" for d in parsed.diagnostics)
    assert parsed.programs
    return parsed.programs


def verdict(text: str, level: Level = "strict") -> Verdict:
    """The verdict on a text with one schedule."""
    (program,) = programs(text)
    return verify(program, level=level)


def found(v: Verdict) -> str:
    """Everything a verdict says, for assertion messages."""
    lines = [f"{d.span}: {d.severity} {d.code} {d.message}" for d in v.diagnostics]
    return "\n".join([v.status, *lines, *v.uncovered])


def marked_lines(text: str, code: str) -> list[int]:
    """Lines that end with the code in a comment."""
    return [n for n, line in enumerate(text.split("\n"), 1) if line.endswith(f"# {code}")]
