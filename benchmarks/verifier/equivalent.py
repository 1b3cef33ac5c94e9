"""Survivors that mean the same as the original, each with its argument (``equivalent.json``).

What is decided without a person is not there: statements that commute (``commute.py``), equal CUDA,
waits that wait for more, rings with less slack (``operators.py``). An argument is about one mutant,
named by its difference with line numbers: when a schedule changes, it has to be made again.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

Change = tuple[str, str, str]
"""Schedule, operator, and the difference of the mutant, as :func:`change` writes it."""


def _read() -> dict[str, frozenset[Change]]:
    text = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
    return {reason: frozenset(map(tuple, m)) for reason, m in json.loads(text).items()}


ARGUMENTS: Mapping[str, frozenset[Change]] = _read()
"""Why mutants mean the same, and which ones."""


def argument(fate: Mapping[str, Any]) -> str | None:
    """The argument for the equivalence of a survivor, None if there is none."""
    own = (fate["subject"], fate["operator"], change(fate["diff"]))
    return next((reason for reason, mutants in ARGUMENTS.items() if own in mutants), None)


def change(diff: str) -> str:
    """A diff without indentation, its lines joined by `` | ``."""
    lines = diff.splitlines()
    return " | ".join(x if x.startswith("@@") else x[0] + x[1:].strip() for x in lines)
