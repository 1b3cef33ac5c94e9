"""How a finding leaves the place where it was made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from cake.diag import Diagnostic, Related, Span


@dataclass(frozen=True, slots=True)
class Origin:
    """Who did something, and in which statement."""

    who: str
    place: Span

    def related(self, what: str) -> Related:
        """The place for a finding; ``what`` was done there."""
        return Related(span=self.place, message=f"{what} by {self.who}")


class Finding(Exception):
    """A finding of the simulator. The first unit or operation that it passes gives it a place."""

    def __init__(
        self,
        code: str,
        message: str,
        facts: Mapping[str, Any] | None = None,
        *,
        related: tuple[Related, ...] = (),
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = dict(facts or {})
        self.related = related
        self.unwritten: str | None = None
        """The buffer or tensor in which nothing has been written, if that is what is wrong."""
        self.arrived: Callable[[], bool] | None = None
        """Whether it has been written by now."""
        self.place: Span | None = None

    def at(self, place: Span, facts: Mapping[str, Any]) -> Finding:
        """This finding with a place and the facts that name it, unless it has one already."""
        if self.place is None:
            self.place = place
            self.facts = {**facts, **self.facts}
        return self

    def diagnostic(self, program: Span) -> Diagnostic:
        """As a diagnostic; what happened outside every statement is placed at the program."""
        return Diagnostic.of(
            self.code,
            self.message,
            self.place or program,
            facts=self.facts,
            related=self.related,
        )
