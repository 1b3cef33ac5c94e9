"""What ptxas says about a kernel: resources per function, and notices at the author's line.

ptxas repairs or drops things without failing (it serialises wgmma, inserts waits, ignores
setmaxnreg) and reports that as "info" in the text of ``--ptxas-options=-v``. This module reads that
text. Line numbers in it count lines of the PTX; :func:`ptx_places` leads them back through the
``.loc`` directives to the lines that the emitter named with ``#line``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

_PROPERTIES = re.compile(r"^ptxas info\s*: Function properties for '?([^']+?)'?$")
_ENTRY = re.compile(r"^ptxas info\s*: Compiling entry function '(.+)' for '(.+)'$")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads$")
_USED = re.compile(r"^ptxas info\s*: Used (\d+) registers(.*)$")
_BARRIERS = re.compile(r"used (\d+) barriers")
_SMEM = re.compile(r"(\d+) bytes smem")
_CMEM = re.compile(r"(\d+) bytes cmem\[(\d+)\]")

_MESSAGE = re.compile(
    r"^ptxas (?:.*?, line (?P<line>\d+); )?\s*(?P<severity>info|warning|error|fatal)\s*: "
    r"(?:\((?P<code>C\d+)\) )?(?P<text>.+)$"
)
_AROUND = re.compile(r"\b(?:around|at) line (\d+)")
_FUNCTION = re.compile(r"\bin (?:the )?function '?([\w$.]+?)'?(?:[,. ]|$)")

_LOC = re.compile(r"^\s*\.loc\s+(\d+)\s+(\d+)\s+(\d+)(?:.*\binlined_at\s+(\d+)\s+(\d+)\s+(\d+))?")
_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"([^"]*)"')
_LINE_DIRECTIVE = re.compile(r'^\s*#\s*(?:line\s+)?\d+\s+"([^"]*)"', re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A line of a file, as ``#line`` names it."""

    file: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FunctionFacts:
    """Resources of one function; all sizes in bytes.

    ``registers`` is per thread. ``smem_bytes`` is static shared memory. ``cmem_bytes`` holds pairs
    of a constant bank and its size. Functions that are not entries have only stack and spill
    figures; the others are 0.
    """

    name: str
    entry: bool
    registers: int = 0
    barriers: int = 0
    stack_bytes: int = 0
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    smem_bytes: int = 0
    cmem_bytes: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """A message of ptxas: anything with a code, and every warning and error.

    ``code`` is such as ``C7508``, or empty. ``ptx_line`` counts lines of the PTX; ``place`` is the
    same place in the author's source, where that is known.
    """

    code: str
    severity: str
    text: str
    function: str | None
    ptx_line: int | None
    place: Place | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxasFacts:
    """All that the log of one compilation says, in the order of the log."""

    functions: tuple[FunctionFacts, ...]
    notices: tuple[Notice, ...]

    def entry(self, name: str) -> FunctionFacts | None:
        """The facts of the kernel ``name``, or None if the log does not have them."""
        return next((f for f in self.functions if f.entry and f.name == name), None)

    def to_json(self) -> str:
        """Canonical JSON text."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> PtxasFacts:
        """The facts written by :meth:`to_json`; raises ``ValueError`` for other text."""
        try:
            data = json.loads(text)
            functions = tuple(_function_from(entry) for entry in data["functions"])
            notices = tuple(_notice_from(entry) for entry in data["notices"])
            return cls(functions=functions, notices=notices)
        except (KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"not ptxas facts: {error!r}") from None


def _function_from(entry: dict[str, Any]) -> FunctionFacts:
    banks = tuple((bank, size) for bank, size in entry.pop("cmem_bytes"))
    return FunctionFacts(cmem_bytes=banks, **entry)


def _notice_from(entry: dict[str, Any]) -> Notice:
    place = entry.pop("place")
    return Notice(place=None if place is None else Place(**place), **entry)


def parse_log(log: str, places: Mapping[int, Place] | None = None) -> PtxasFacts:
    """The facts in ``log``, the text that NVRTC or ptxas printed with ``-v``.

    ``places`` maps PTX lines to the author's lines (:func:`ptx_places`). Lines that ptxas did not
    write are passed over.
    """
    functions: dict[str, FunctionFacts] = {}
    notices: list[Notice] = []
    entries: set[str] = set()
    current = ""
    for line in log.splitlines():
        if found := _ENTRY.match(line):
            entries.add(found[1])
        elif found := _PROPERTIES.match(line):
            current = found[1]
            functions[current] = FunctionFacts(name=current, entry=current in entries)
        elif (found := _STACK.search(line)) and current:
            stack, stores, loads = map(int, found.groups())
            functions[current] = replace(
                functions[current],
                stack_bytes=stack,
                spill_store_bytes=stores,
                spill_load_bytes=loads,
            )
        elif (found := _USED.match(line)) and current:
            functions[current] = _with_usage(functions[current], int(found[1]), found[2])
        elif found := _MESSAGE.match(line):
            notices.extend(_notices(found, places or {}))
    return PtxasFacts(functions=tuple(functions.values()), notices=tuple(notices))


def _with_usage(function: FunctionFacts, registers: int, rest: str) -> FunctionFacts:
    barriers, smem = _BARRIERS.search(rest), _SMEM.search(rest)
    return replace(
        function,
        registers=registers,
        barriers=int(barriers[1]) if barriers else 0,
        smem_bytes=int(smem[1]) if smem else 0,
        cmem_bytes=tuple((int(bank), int(size)) for size, bank in _CMEM.findall(rest)),
    )


def _notices(found: re.Match[str], places: Mapping[int, Place]) -> Iterator[Notice]:
    code, severity, text = found["code"] or "", found["severity"], found["text"]
    if severity == "info" and not code:
        return  # progress and totals
    function, around = _FUNCTION.search(text), _AROUND.search(text)
    line = found["line"] or (around[1] if around else None)
    ptx_line = int(line) if line else None
    yield Notice(
        code=code,
        severity=severity,
        text=text,
        function=function[1] if function else None,
        ptx_line=ptx_line,
        place=places.get(ptx_line) if ptx_line else None,
    )


def line_files(source: str) -> frozenset[str]:
    """The file names that the ``#line`` directives of a CUDA source give."""
    return frozenset(_LINE_DIRECTIVE.findall(source))


def ptx_places(ptx: str, files: Collection[str]) -> dict[int, Place]:
    """The author's place of each line of ``ptx`` (both counted from 1).

    ``ptx`` must be compiled with ``-lineinfo``. ``files`` are the names that the source gave in
    ``#line``; NVRTC makes them absolute, and here they are shortened again. Code of an inlined
    function belongs to the place of the outermost call. (PTX ISA, directives .loc and .file.)
    """
    lines = ptx.splitlines()
    names = {int(m[1]): as_given(m[2], files) for line in lines if (m := _FILE.match(line))}
    places: dict[int, Place] = {}
    callers: dict[tuple[int, ...], tuple[int, ...]] = {}
    current: Place | None = None
    for number, line in enumerate(lines, start=1):
        if found := _LOC.match(line):
            here = tuple(int(figure) for figure in found.groups()[:3])
            if found[4]:
                callers[here] = tuple(int(figure) for figure in found.groups()[3:])
            else:
                callers.pop(here, None)
            current = _outermost(here, callers, names)
        if current is not None:
            places[number] = current
    return places


def _outermost(
    here: tuple[int, ...],
    callers: Mapping[tuple[int, ...], tuple[int, ...]],
    names: Mapping[int, str],
) -> Place:
    seen = set()
    while here in callers and here not in seen:
        seen.add(here)
        here = callers[here]
    return Place(file=names.get(here[0], "?"), line=here[1])


def as_given(path: str, files: Collection[str]) -> str:
    """The name in ``files`` that ``path`` ends with, or the last part of ``path``."""
    matches = [name for name in files if path == name or path.endswith("/" + name)]
    return max(matches, key=len, default=path.rsplit("/", 1)[-1])
