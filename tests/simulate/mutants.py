"""Broken copies of a schedule: one statement dropped, or one operand changed, in each."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

SYNCHRONISING = (
    "arrive",
    "cluster_arrive",
    "cluster_sync",
    "cluster_wait",
    "commit",
    "cp_async_commit",
    "cp_async_wait",
    "cta_sync",
    "fence_async",
    "named_arrive",
    "named_sync",
    "release",
    "role_sync",
    "tma_store_commit",
    "tma_store_wait",
    "unit_sync",
    "wgmma_wait",
)
"""Statements whose loss changes no value that a thread computes by itself."""

_DROPPED = re.compile(rf"^( +)(?:{'|'.join(SYNCHRONISING)})\(.*\)$")
_COPY = re.compile(r"^ +(?:tma_load|tma_store|cp_async|bulk_load)\(")
_LAST_COORDINATE = re.compile(r"(?<=[\w)\]])\](?=, [A-Za-z]|\)|, bytes|, clamp|, outside)")
_SLOT = re.compile(r"\b([A-Z])\[(s|s[a-z]|last|first|stage|ahead)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """A schedule's text with one change in ``line`` (from 1), which read ``was``.

    ``nth`` tells equal changes of equal lines apart.
    """

    kind: str
    line: int
    was: str
    nth: int
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """Every mutant of a schedule file."""
    lines = text.splitlines(keepends=True)
    seen: Counter[tuple[str, str]] = Counter()
    for i, line in enumerate(lines):
        for kind, new in _changes(line.rstrip("\n")):
            changed = "".join([*lines[:i], new + "\n", *lines[i + 1 :]])
            was = line.strip()
            yield Mutant(kind=kind, line=i + 1, was=was, nth=seen[kind, was], text=changed)
            seen[kind, was] += 1


def _changes(line: str) -> Iterator[tuple[str, str]]:
    dropped = _DROPPED.match(line)
    if dropped:
        yield "dropped", f"{dropped[1]}pass"
    if "init=True" in line:
        yield "added to nothing", line.replace("init=True", "init=False")
    if "wgmma_wait(0)" in line:
        yield "one product too many in flight", line.replace("(0)", "(1)")
    if _COPY.match(line) and (place := list(_LAST_COORDINATE.finditer(line))):
        at = place[-1].start()
        yield "wrong offset", f"{line[:at]} + 8{line[at:]}"
    for slot in _SLOT.finditer(line):
        yield f"wrong stage of {slot[1]}", f"{line[: slot.start(2)]}0{line[slot.end(2) :]}"
