"""Candidates, and how they are run: the seam between the judge and whatever it judges."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from cake.workloads import Problem

CONFINED = frozenset({"python", "cuda"})
"""Runners of candidates that nobody vouches for: their child is confined."""

HOST_CODE = frozenset({"python"})
"""Runners whose candidates share the child's process: nothing that the child says about a run is
evidence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """What is judged: the ``text`` of a schedule file, the function ``entry`` in it, values of its
    ``meta`` parameters, and the name of the ``runner`` that can build and run it. ``path`` is
    only for messages: the text is what counts, the file may change meanwhile."""

    runner: str
    entry: str
    meta: Mapping[str, bool | int | float | str] = field(default_factory=dict)
    path: str = ""
    text: str = ""

    @classmethod
    def from_file(
        cls, path: Path, *, runner: str, entry: str, meta: Mapping[str, bool | int | float | str]
    ) -> Candidate:
        """The candidate in the schedule file ``path``. Raises ``OSError``, ``UnicodeError``."""
        text = path.read_text(encoding="utf-8")
        return cls(runner=runner, entry=entry, meta=dict(meta), path=str(path), text=text)

    def digest(self) -> str:
        """A hash of what is built: equal for the same text under another path or runner."""
        content: list[object] = [self.text, self.entry, dict(sorted(self.meta.items()))]
        if not self.text:
            content.append(self.runner)  # Without a source, the runner is all there is.
        return hashlib.sha256(json.dumps(content).encode()).hexdigest()


class Runner(Protocol):
    """A built candidate."""

    def run(self, tensors: Mapping[str, Any]) -> None:
        """Compute once. ``tensors`` has all tensors of the contract by name, as arrays of the
        device (numpy on the CPU; on a GPU torch tensors, or arrays with the same members);
        outputs and workspaces are overwritten. May return before the device has finished. A
        runner that keeps memory of its own has a method ``reset`` too, which is called before
        every run, outside the timed window."""


class BuildError(Exception):
    """The candidate cannot be built; the message is shown to its author."""


class Refused(Exception):
    """The candidate's own guards do not admit this problem."""


# Runs in the child; raises BuildError or Refused.
RunnerFactory = Callable[[Candidate, Problem], Runner]
