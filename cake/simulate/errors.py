"""How a finding leaves the place where it was made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class Finding(Exception):
    """A finding of the simulator, without a place yet; the interpreter adds the statement."""

    def __init__(self, code: str, message: str, facts: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.facts = dict(facts or {})
