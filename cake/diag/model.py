"""The one diagnostic type: what every stage of CAKE reports about a program or a machine."""

import hashlib
import json
import math
import operator
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Self, SupportsIndex, TypeAlias

from cake.diag.catalogue import Code, Severity, UnknownCodeError, lookup

Fact: TypeAlias = "int | float | str | Sequence[Fact] | None"
Applicability: TypeAlias = Literal["safe", "unsafe", "display-only"]

APPLICABILITIES: tuple[Applicability, ...] = ("safe", "unsafe", "display-only")

# Facts that name a part of the program; all others are figures or detail.
_NAMING_FACTS = ("function", "role", "roles")

# A number, or several joined as in 64x128 or 1,024. Digits inside a word (bf16, sm_90a,
# m64n256k16) belong to a name and stay.
_FIGURE = re.compile(
    r"(?<!\w)[-+]?(?:0[xX][0-9a-fA-F]+|\d+(?:[.,_x×]\d+)*(?:[eE][-+]?\d+)?)"  # noqa: RUF001
)


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Span:
    """A stretch of source text.

    Lines and columns count from 1, columns in characters (not bytes; a tab is one); ``end_col`` is
    exclusive, so an empty span has ``end_col == col``. Raises ``ValueError`` for a figure below 1
    or an end that lies before the start.
    """

    file: str
    line: int
    col: int
    end_line: int
    end_col: int

    def __post_init__(self) -> None:
        if min(self.line, self.col, self.end_line, self.end_col) < 1:
            raise ValueError(f"{self}: lines and columns count from 1")
        if (self.end_line, self.end_col) < (self.line, self.col):
            raise ValueError(f"{self}: ends before it starts")

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.col}-{self.end_line}:{self.end_col}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """Another place that belongs to a finding, with what happens there."""

    span: Span
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Edit:
    """Put ``replacement`` in place of the text of ``span``; an empty span inserts."""

    span: Span
    replacement: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fix:
    """A remedy that can be carried out mechanically.

    ``safe`` keeps the meaning of the program, ``unsafe`` may change it, ``display-only`` is for
    reading and is never applied.
    """

    message: str
    applicability: Applicability
    edits: tuple[Edit, ...]

    def __post_init__(self) -> None:
        if self.applicability not in APPLICABILITIES:
            known = ", ".join(APPLICABILITIES)
            raise ValueError(f"applicability {self.applicability!r} is not one of {known}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Diagnostic:
    """One finding.

    ``message`` is one sentence that stands alone, with the value and the limit in it; ``label`` is
    the text beside the carets; ``facts`` holds the same figures by name, so that an agent never
    parses prose. Facts are stored as plain JSON values: sequences become lists, integers of other
    libraries ``int``, and the floats that JSON lacks the strings ``nan``, ``inf`` and ``-inf``.
    ``TypeError`` is raised for a fact of another type. Two diagnostics that differ only in facts
    hash alike.
    """

    code: str
    severity: Severity
    stage: str
    message: str
    span: Span | None = None
    label: str | None = None
    related: tuple[Related, ...] = ()
    facts: Mapping[str, Fact] = field(default_factory=dict, hash=False)
    helps: tuple[str, ...] = ()
    fix: Fix | None = None

    def __post_init__(self) -> None:
        plain = {name: _plain_fact(name, value) for name, value in self.facts.items()}
        object.__setattr__(self, "facts", plain)

    @classmethod
    def of(
        cls,
        code: Code | str,
        message: str,
        span: Span | None = None,
        *,
        label: str | None = None,
        related: tuple[Related, ...] = (),
        facts: Mapping[str, Fact] | None = None,
        helps: tuple[str, ...] = (),
        fix: Fix | None = None,
    ) -> Self:
        """A diagnostic with the severity and stage of its catalogue entry.

        ``code`` is an entry, a code or a name; ``UnknownCodeError`` is raised for an undefined one.
        """
        entry = lookup(code) if isinstance(code, str) else code
        return cls(
            code=entry.code,
            severity=entry.severity,
            stage=entry.stage,
            message=message,
            span=span,
            label=label,
            related=related,
            facts=facts or {},
            helps=helps,
            fix=fix,
        )

    @property
    def name(self) -> str:
        """The name of the code, or the code itself if this version of CAKE does not define it."""
        try:
            return lookup(self.code).name
        except UnknownCodeError:
            return self.code

    @property
    def fingerprint(self) -> str:
        """A hash (16 hexadecimal digits) that is the same for repeats of one finding.

        It covers the code, the message with figures struck out, and the facts that name a function
        or a role; not the place, so that a finding is recognised after an edit and across
        candidates, in any process and on any machine.
        """
        names = {name: self.facts[name] for name in _NAMING_FACTS if name in self.facts}
        identity = json.dumps([self.code, _FIGURE.sub("#", self.message), names])
        return hashlib.blake2b(identity.encode(), digest_size=8).hexdigest()


def _plain_fact(name: str, value: object) -> Fact:
    match value:
        case None | bool() | str():
            return value
        case float():
            return float(value) if math.isfinite(value) else str(float(value))
        case SupportsIndex():
            return operator.index(value)
        case list() | tuple():
            return [_plain_fact(name, item) for item in value]
        case _:
            raise TypeError(
                f"fact {name!r} is a {type(value).__name__}; "
                "use int, float, str, bool, None or a list of them"
            )
