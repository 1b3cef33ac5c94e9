"""Exit statuses of `cake`, the same for every command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import IntEnum

from cake.diag import Diagnostic, Severity

_MACHINE_CODES = frozenset({"CK608", "CK610", "CK822", "CK824", "CK825"})
"""Findings of other stages that speak of the machine, not of the program: a missing tool or GPU, a
full disk, a run that another process writes."""

_USAGE_CODES = frozenset({"CK821", "CK823", "CK826"})
"""Findings about what was asked for: a folder that holds a run, or none, and a bad budget."""


class Status(IntEnum):
    """What became of a command.

    ``FAULT`` is an error in CAKE itself. The last three follow the shell: 128 plus the signal.
    """

    ACCEPTED = 0
    REJECTED = 1
    USAGE = 2
    INCOMPLETE = 3
    ENVIRONMENT = 4
    FAULT = 70
    INTERRUPTED = 130
    PIPE_CLOSED = 141
    TERMINATED = 143

    @property
    def word(self) -> str:
        """The name that JSON documents carry."""
        return self.name.lower().replace("_", "-")


class Failure(Exception):
    """A command ends here, with findings that explain why.

    ``sources`` maps the names of files to their text, for those that cannot be read again.
    """

    def __init__(
        self, status: Status, *diagnostics: Diagnostic, sources: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(status, diagnostics)
        self.status = status
        self.diagnostics = diagnostics
        self.sources = dict(sources or {})


def status_of(diagnostics: Sequence[Diagnostic]) -> Status:
    """What findings mean for the exit status: not every one is the program's fault."""
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    if any(d.stage == "environment" or d.code in _MACHINE_CODES for d in errors):
        return Status.ENVIRONMENT
    if any(d.code in _USAGE_CODES for d in errors):
        return Status.USAGE
    return Status.REJECTED if errors else Status.ACCEPTED
