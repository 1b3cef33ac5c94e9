"""Writing outputs: whole or not at all, and with a finding where that fails."""

from __future__ import annotations

import contextlib
import os
import tempfile
from pathlib import Path

from cake.cli.findings import UNWRITABLE
from cake.cli.status import Failure, Status
from cake.diag import Diagnostic


def make_folder(folder: Path) -> None:
    """Make ``folder`` and its parents. Raises :class:`Failure`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _unwritable(folder, error) from None


def write(path: Path, content: bytes) -> None:
    """Put ``content`` at ``path``, through a temporary file beside it. Raises :class:`Failure`."""
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> Failure:
    reason = error.strerror or str(error)
    finding = Diagnostic.of(
        UNWRITABLE,
        f"cannot write {path}: {reason}",
        facts={"path": str(path), "errno": error.errno},
        helps=("free some space, or give another folder with -o",),
    )
    return Failure(Status.ENVIRONMENT, finding)
