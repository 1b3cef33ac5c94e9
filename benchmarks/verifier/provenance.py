"""When, from which commit and by which command figures were made."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

_ROOT = Path(__file__).parents[2]


def provenance(module: str) -> dict[str, str]:
    """Date, commit (with ``+`` if tracked files differ from it) and command line."""
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "commit": _git("rev-parse", "--short", "HEAD") + ("+" if changed else ""),
        "command": " ".join(["python -m", module, *sys.argv[1:]]),
    }


def _git(*arguments: str) -> str:
    """The answer of git, or nothing where the sources are no checkout."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=_ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()
