"""What has been judged already, line by line, so that a run that was stopped goes on."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import cake

Record = dict[str, Any]
T = TypeVar("T")

APART = (
    *("families.py", "more_families.py", "wide_families.py", "dress.py", "generate.py"),
    *("equivalent.py", "figures.py", "page.py", "provenance.py", "device.py", "device_child.py"),
)
"""Files that say which texts are judged, or what to make of a record: its key is the text."""


class Journal:
    """Records by key, in a file if ``path`` is given.

    The first line of the file names the sources that the records were made with; with other
    sources it is begun anew.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._known: dict[str, Record] = {}
        if path is None:
            return
        head = json.dumps({"sources": sources()})
        if path.exists():
            first, *rest = path.read_text(encoding="utf-8").splitlines() or [""]
            if first == head:
                self._known = dict(map(json.loads, rest))
                return
        path.write_text(head + "\n", encoding="utf-8")

    def complete(
        self,
        keys: Sequence[str],
        items: Sequence[T],
        judge: Callable[[Sequence[T]], Iterable[Record]],
    ) -> list[Record]:
        """The record of each item; ``judge`` makes those that are missing, in their order."""
        missing = [i for i, key in enumerate(keys) if key not in self._known]
        made = judge([items[i] for i in missing]) if missing else ()
        for i, record in zip(missing, made, strict=True):
            self._known[keys[i]] = record
            if self._path is not None:
                with self._path.open("a", encoding="utf-8") as file:
                    file.write(json.dumps([keys[i], record]) + "\n")
        return [self._known[key] for key in keys]


def sources() -> str:
    """A hash of everything that a record depends on."""
    digest = hashlib.sha256()
    for folder in (Path(cake.__file__).parent, Path(__file__).parent):
        for path in sorted(folder.rglob("*.py")):
            if path.parent != Path(__file__).parent or path.name not in APART:
                digest.update(path.read_bytes())
    return digest.hexdigest()[:16]
