"""Lines of C++ with the author's line that each comes from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from cake.codegen.cuda_text import identifiers, tidy
from cake.codegen.ptxas import Place
from cake.diag import Span

INDENT = "  "
_DIRECTIVE = re.compile(r'#line (\d+) "(.*)"$')


@dataclass(frozen=True, slots=True)
class Line:
    """One line: ``depth`` is its indentation, ``loc`` the author's place it comes from."""

    text: str
    depth: int
    loc: Span

    @property
    def is_comment(self) -> bool:
        return self.text.startswith("//")


@dataclass(frozen=True, slots=True)
class Definition:
    """``const type name = value;``, written only where the name is used.

    ``comment`` explains it.
    """

    name: str
    type: str
    value: str
    comment: str = ""

    @property
    def text(self) -> str:
        const = "" if self.type.startswith("constexpr") else "const "
        line = f"{const}{self.type} {self.name} = {self.value};"
        return f"{line}  // {self.comment}" if self.comment else line


def needed(definitions: Sequence[Definition], lines: Sequence[Line]) -> list[Definition]:
    """Those definitions that ``lines`` use, and what these use in turn; in order."""
    used: set[str] = set()
    for line in lines:
        if not line.is_comment:
            used |= identifiers(line.text)
    kept = []
    for definition in reversed(definitions):
        if definition.name in used:
            kept.append(definition)
            used |= identifiers(definition.value)
    return kept[::-1]


class Writer:
    """Collects lines; ``loc`` is the place that new lines belong to."""

    def __init__(self, loc: Span, depth: int = 0) -> None:
        self.lines: list[Line] = []
        self.loc = loc
        self.depth = depth

    def line(self, text: str) -> None:
        """One line at the current indentation."""
        self.lines.append(Line(tidy(text), self.depth, self.loc))

    def comment(self, text: str) -> None:
        """A comment line, cut to a readable length."""
        flat = " ".join(text.split()).replace("\\", "/")
        text = f"// {flat if len(flat) <= 96 else flat[:93] + '...'}"
        self.lines.append(Line(text, self.depth, self.loc))

    @contextmanager
    def block(self, head: str) -> Iterator[None]:
        """``head {`` ... ``}``; a bare block without a head; ``else`` joins the line before."""
        last = self.lines[-1] if self.lines else None
        if head.startswith("else") and last and last.text == "}" and last.depth == self.depth:
            self.lines.pop()
            head = f"}} {head}"
        self.line(f"{head} {{" if head else "{")
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1
        self.line("}")

    @contextmanager
    def headed(self, definitions: Sequence[Definition]) -> Iterator[None]:
        """Put in front of the lines written inside those definitions that they use."""
        loc, start = self.loc, len(self.lines)
        yield
        head = needed(definitions, self.lines[start:])
        self.lines[start:start] = [Line(d.text, self.depth, loc) for d in head]

    def reopen(self, head: str) -> bool:
        """Go back into a block just closed, if it had this head; False if it had not.

        Comments after the block move into it.
        """
        last = len(self.lines) - 1
        while last >= 0 and self.lines[last].is_comment:
            last -= 1
        if last < 0 or self.lines[last].text != "}" or self.lines[last].depth != self.depth:
            return False
        opening = last - 1
        while opening >= 0 and self.lines[opening].depth > self.depth:
            opening -= 1
        if opening < 0 or self.lines[opening].text != f"{head} {{":
            return False
        moved = [Line(c.text, c.depth + 1, c.loc) for c in self.lines[last + 1 :]]
        self.lines[last:] = moved
        return True


def render(lines: Sequence[Line]) -> str:
    """The text of ``lines``, with a ``#line`` wherever the compiler would count otherwise."""
    out: list[str] = []
    expected: tuple[str, int] | None = None
    for line in lines:
        here = (line.loc.file, line.loc.line)
        if not line.is_comment and here != expected:
            file = here[0].replace("\\", "\\\\").replace('"', '\\"')
            out.append(f'#line {here[1]} "{file}"')
            expected = here
        pragma = line.text.startswith("#")
        out.append(line.text if pragma else INDENT * line.depth + line.text)
        if expected is not None:
            expected = (expected[0], expected[1] + 1)
    return "\n".join(out) + "\n"


def without_line_directives(source: str) -> str:
    """A source as people read it: the directives that lead back to the schedule are left out."""
    kept = (line for line in source.split("\n") if not line.startswith("#line "))
    return "\n".join(kept)


def line_places(source: str) -> list[Place]:
    """The author's place of each line of a rendered source, directives not counted."""
    places: list[Place] = []
    file, number = "", 0
    for line in source.split("\n"):
        directive = _DIRECTIVE.match(line)
        if directive:
            number, file = int(directive[1]), directive[2]
            continue
        if file:
            places.append(Place(file=file.replace('\\"', '"').replace("\\\\", "\\"), line=number))
        number += 1
    return places
