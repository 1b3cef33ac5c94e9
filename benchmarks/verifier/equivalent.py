"""Survivors that mean the same as the original, each with its argument.

What is decided without a person is not here: statements that commute (``commute.py``), equal CUDA,
waits that wait for more, rings with less slack (``operators.py``).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Change = tuple[str, str, str]
"""Schedule, operator, and the changed lines of the mutant, as :func:`change` writes them."""

ARGUMENTS: Mapping[str, tuple[Change, ...]] = {}
"""Why mutants mean the same, and which ones."""


def argument(fate: Mapping[str, Any]) -> str | None:
    """The argument for the equivalence of a survivor, None if there is none."""
    own = (fate["subject"], fate["operator"], change(fate["diff"]))
    return next((reason for reason, mutants in ARGUMENTS.items() if own in mutants), None)


def change(diff: str) -> str:
    """The changed lines of a diff without indentation, joined by `` | ``."""
    lines = [line for line in diff.splitlines() if not line.startswith("@@")]
    return " | ".join(line[0] + line[1:].strip() for line in lines)
