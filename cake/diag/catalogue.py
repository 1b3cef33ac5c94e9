"""The catalogue of codes: what each finding is called, how grave it is, and its explain page.

A code is defined once, beside the check that reports it::

    RING_REUSE = define(
        code="CK412",
        name="ring-reuse-before-release",
        severity=Severity.ERROR,
        stage="verify",
        summary="A slot of a ring is written while a consumer may still read it.",
        page=__doc__,
    )

The hundreds say where a finding comes from:

====== ==================================
CK0xx  language and parsing
CK1xx  types and names
CK2xx  primitives and targets
CK3xx  verifier, structural rules (L0)
CK4xx  verifier, ring algebra (L1)
CK5xx  simulation
CK6xx  build and ptxas
CK7xx  run time and launch
CK8xx  judge and evolution
CK9xx  environment
====== ==================================

A code that has been released keeps its meaning: it may be retired, but its number is never given to
another finding.
"""

import re
from dataclasses import dataclass
from enum import StrEnum

_CODE = re.compile(r"CK[0-9]{3}")
_NAME = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Severity(StrEnum):
    """How grave a finding is. Only an error rejects a program."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """One entry of the catalogue.

    ``summary`` is a single line; ``page`` is the Markdown text that ``cake explain`` shows.
    Raises ``ValueError`` for a code that is not ``CK`` with three digits, a name that is not in
    kebab case, a summary that is empty or longer than a line, or an empty page.
    """

    code: str
    name: str
    severity: Severity
    stage: str
    summary: str
    page: str

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(f"code {self.code!r} is not of the form CK123")
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.code}: name {self.name!r} is not of the form lower-case-words")
        if not self.summary.strip() or "\n" in self.summary:
            raise ValueError(f"{self.code}: the summary must be one line of text")
        if not self.page.strip():
            raise ValueError(f"{self.code}: the explain page is empty")


class UnknownCodeError(LookupError):
    """No entry has this code or name. ``suggestions`` holds the nearest entries, best first."""

    def __init__(self, text: str, suggestions: tuple[Code, ...] = ()) -> None:
        super().__init__(text, suggestions)
        self.text = text
        self.suggestions = suggestions

    def __str__(self) -> str:
        message = f"no finding has the code or name `{self.text}`"
        if not self.suggestions:
            return message
        nearest = ", ".join(f"{entry.code} ({entry.name})" for entry in self.suggestions)
        return f"{message}; nearest: {nearest}"


class Catalogue:
    """Codes by number and by name. The program has one; tests make their own."""

    def __init__(self) -> None:
        self._by_code: dict[str, Code] = {}
        self._by_name: dict[str, Code] = {}

    def define(
        self, *, code: str, name: str, severity: Severity, stage: str, summary: str, page: str
    ) -> Code:
        """Add an entry and return it. Raises ``ValueError`` if the code or the name is taken."""
        entry = Code(
            code=code, name=name, severity=severity, stage=stage, summary=summary, page=page
        )
        if taken := self._by_code.get(code) or self._by_name.get(name):
            raise ValueError(
                f"{code} ({name}) clashes with {taken.code} ({taken.name}): "
                "a code and a name are defined once"
            )
        self._by_code[code] = entry
        self._by_name[name] = entry
        return entry

    def lookup(self, code_or_name: str) -> Code:
        """The entry with this code or name, in any case. Raises ``UnknownCodeError``."""
        entry = self._by_code.get(code_or_name.upper()) or self._by_name.get(code_or_name.lower())
        if entry is None:
            raise UnknownCodeError(code_or_name)
        return entry

    def all_codes(self) -> tuple[Code, ...]:
        """Every entry, by ascending code."""
        return tuple(self._by_code[code] for code in sorted(self._by_code))


CATALOGUE = Catalogue()

define = CATALOGUE.define
lookup = CATALOGUE.lookup
all_codes = CATALOGUE.all_codes
