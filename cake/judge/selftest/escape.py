"""Reaching out of the process: network, files, other processes."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

from cake.judge import judge
from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import (
    IntegrityClass,
    Outcome,
    Trial,
    evaluation,
    judged,
    outcome_of,
)

_HOLD = "contained"
_TRY = """\
import os
import socket


def write():
    with open({mark!r}, "w") as file:
        file.write("escaped")


def network():
    if [name for _, name in socket.if_nameindex() if name != "lo"]:
        raise AssertionError("there is a network")
    raise OSError


def kill():
    os.kill({parent}, 0)


try:
    {what}()
except (OSError, PermissionError):
    pass
else:
    raise AssertionError("{what} succeeded")
"""
_SCRATCH = """\
import socket
import tempfile

with tempfile.TemporaryFile() as file:
    file.write(b"notes")
left, right = socket.socketpair()
left.send(b"to myself")
assert right.recv(9) == b"to myself"


"""


def _tried(what: str) -> Trial:
    """Caught: the attempt came to nothing, and what is right then passes."""

    def trial() -> Outcome:
        # Where the user works; a temporary folder would be hidden, not protected.
        here = Path.cwd() if os.access(Path.cwd(), os.W_OK) else None
        with TemporaryDirectory(dir=here) as folder:
            mark = Path(folder) / "mark"
            text = _TRY.format(what=what, mark=str(mark), parent=os.getpid())
            verdict = judge(evaluation(text + "\n\n" + SOFTMAX))
            if mark.exists():
                return Outcome(caught=False, evidence="a file was written")
        isolation = verdict.environment.get("isolation", "")
        outcome = outcome_of(verdict)
        if outcome.caught:
            return Outcome(caught=False, evidence=f"{outcome.evidence} ({isolation})")
        return Outcome(caught=True, evidence=f"{_HOLD} by {isolation}")

    return trial


CLASS = IntegrityClass(
    name="escape",
    description="network, files and processes outside of the candidate's own",
    caught_by="namespaces of the kernel where it grants them",
    because=_HOLD,
    cheats={what: _tried(what) for what in ("write", "network", "kill")},
    honest=judged(evaluation(_SCRATCH + SOFTMAX)),
)
