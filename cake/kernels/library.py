"""The shipped schedules: which files there are for a workload and a target."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from cake.targets import get, names


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleFile:
    """The text of a schedule file.

    ``name`` tells the structural variants of a workload apart. ``target`` is the architecture that
    the text is elaborated for, None for the one that its decorators name; ``written_for`` the one
    in its file name, which differs where a file for a base architecture (sm_80) serves a newer
    one. ``path`` is for messages.
    """

    name: str
    path: Path
    target: str | None
    written_for: str | None
    text: str


def schedules(workload: str, target: str) -> tuple[ScheduleFile, ...]:
    """The shipped schedule files of ``workload`` that can be elaborated for ``target``.

    Files written for exactly this target come first. Base architectures are forward compatible
    (PTX ISA, "Release Notes: target architectures"), so files for an older one without a suffix
    follow, and those for a target whose features this one shares; all are elaborated and built for
    ``target`` itself. Empty if there is none. Raises
    :class:`cake.targets.UnknownTarget`.
    """
    get(target)
    found = [
        ScheduleFile(
            name=path.stem,
            path=path,
            target=target,
            written_for=written_for,
            text=path.read_text(encoding="utf-8"),
        )
        for path, written_for in _paths(workload)
        if written_for == target or _serves(written_for, target)
    ]
    return tuple(sorted(found, key=lambda f: (f.written_for != target, f.name)))


def available(workload: str) -> tuple[str, ...]:
    """The targets that ``workload`` has files written for."""
    written = {written_for for _, written_for in _paths(workload)}
    return tuple(name for name in names() if name in written)


def schedule_file(path: Path, target: str | None = None) -> ScheduleFile:
    """A user's schedule file, elaborated for ``target`` (for its own one without).

    Raises ``OSError``, ``UnicodeError``.
    """
    text = path.read_text(encoding="utf-8")
    return ScheduleFile(name=path.stem, path=path, target=target, written_for=None, text=text)


def _paths(workload: str) -> list[tuple[Path, str]]:
    """Every schedule file of a workload with the target in its name."""
    folder = Path(str(files("cake.kernels"))) / workload
    found = []
    for path in sorted(folder.glob("sm_*.py")):
        written_for = next((t for t in names() if f"{path.stem}_".startswith(f"{t}_")), None)
        if written_for is not None:
            found.append((path, written_for))
    return found


_FAMILIES = {"sm_100a": frozenset({"sm_103a"})}
"""Targets that share the features of another one (PTX ISA, ".target": family sm_100f)."""


def _serves(written_for: str, target: str) -> bool:
    """Whether code for one architecture is admitted by a newer one."""
    if target in _FAMILIES.get(written_for, ()):
        return True
    base = written_for[-1].isdigit()
    return base and get(written_for).capability < get(target).capability
