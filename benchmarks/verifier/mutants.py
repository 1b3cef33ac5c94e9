"""Mutants of a schedule: text, operator, and the lines that were changed."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from random import Random

from benchmarks.verifier.data_operators import OPERATORS
from benchmarks.verifier.subjects import Subject
from cake.diag import Span
from cake.lang.printer import print_program

COPIES = 2
_NUMBERS = re.compile(r"_?\d+")


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """One slip in a schedule.

    ``places`` are the spans of the changed statements in the canonical text of the original;
    ``program`` is the number of the launched program that was changed. ``equivalent`` says why it
    means the same as the original, where that is decided beforehand.
    """

    subject: str
    operator: str
    program: int
    places: tuple[Span, ...]
    original: str
    text: str
    equivalent: str | None = None

    @cached_property
    def key(self) -> str:
        """Identity of the mutated text."""
        return hashlib.sha256(self.text.encode()).hexdigest()[:16]

    @property
    def lines(self) -> frozenset[int]:
        """The first lines of the changed statements in the original."""
        return frozenset(p.line for p in self.places)

    def diff(self) -> str:
        """What changed, as a unified diff without context."""
        before, after = self.original.splitlines(), self.text.splitlines()
        lines = list(difflib.unified_diff(before, after, lineterm="", n=0))
        return "\n".join(lines[2:])

    def original_lines(self, line: int) -> frozenset[int]:
        """The lines of the original that line ``line`` of the mutant comes from."""
        matcher = difflib.SequenceMatcher(
            None, self.original.splitlines(), self.text.splitlines(), autojunk=False
        )
        for tag, i1, i2, j1, j2 in matcher.get_opcodes():
            if j1 < line <= j2:
                if tag == "equal":
                    return frozenset({line - j1 + i1})
                return frozenset(range(i1 + 1, i2 + 1)) | self.lines
        return frozenset()


def mutants(subject: Subject, copies: int = COPIES) -> Iterator[Mutant]:
    """The mutants of a schedule: each text once, by the first operator that makes it.

    Of the same slip in several copies of an unrolled statement, ``copies`` are kept.
    """
    alike: Counter[tuple[str, str]] = Counter()
    for m in _all(subject):
        changed = sorted(line for line in m.diff().splitlines() if not line.startswith("@@"))
        kind = m.operator, _NUMBERS.sub("", "\n".join(changed))
        alike[kind] += 1
        if alike[kind] <= copies:
            yield m


def _all(subject: Subject) -> Iterator[Mutant]:
    programs = subject.programs()
    printed = [print_program(p) for p in programs]
    seen = {subject.text}
    for op in OPERATORS:
        for number, program in enumerate(programs):
            for edit in op.apply(program):
                changed = [*printed[:number], print_program(edit.program), *printed[number + 1 :]]
                text = "\n\n".join(changed)
                if text in seen:
                    continue
                seen.add(text)
                yield Mutant(
                    subject=subject.name,
                    operator=op.name,
                    program=number,
                    places=tuple(n.loc for n in edit.nodes),
                    original=subject.text,
                    text=text,
                    equivalent=op.equivalent or edit.equivalent,
                )


def sample(found: list[Mutant], limit: int, seed: int = 0) -> list[Mutant]:
    """At most ``limit`` mutants, spread over schedules and operators; the same ones every time."""
    groups: dict[tuple[str, str], list[Mutant]] = {}
    for m in found:
        groups.setdefault((m.subject, m.operator), []).append(m)
    random = Random(seed)
    for group in groups.values():
        random.shuffle(group)
    order = list(groups.values())
    random.shuffle(order)
    chosen: list[Mutant] = []
    while len(chosen) < limit and any(order):
        for group in order:
            if group and len(chosen) < limit:
                chosen.append(group.pop())
    return chosen
