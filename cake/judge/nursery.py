"""Worker processes, forked from one that has already imported numpy, torch and the runners.

Imports are most of what a verdict on a small problem would take. The forked process has no CUDA
context and no memory of earlier candidates: everything that a candidate can change is its own.
"""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cake.judge.records import encode
from cake.judge.sandbox import Confinement
from cake.judge.zygote import MESSAGE_BYTES, READY

START_SECONDS = 60.0
MOST_ZYGOTES = 8

# What Python and libraries read when they start; other variables are set for each worker.
_READ_AT_START = ("PYTHON", "LD_", "VIRTUAL_ENV", "OPENBLAS_", "OMP_", "MKL_", "CUDA_", "NVIDIA_")

_LOCALE = ("LANG", "LC_", "TZ", "HOME", "TMPDIR")
_PASSED_ON = ("PATH", *_READ_AT_START, *_LOCALE)


class Stillborn(Exception):
    """No worker can be started; ``output`` is what the interpreter printed."""

    def __init__(self, message: str, output: str) -> None:
        super().__init__(message)
        self.output = output


class WorkerProcess:
    """A worker and its warden, by the warden's process id, which is that of their group."""

    def __init__(self, pid: int, status: int) -> None:
        self.pid = pid
        self._status = status
        self._code: int | None = None
        self._killed = False

    def poll(self) -> int | None:
        """The worker's exit code, minus the signal that ended it; None while it runs."""
        if self._code is None and select.select([self._status], [], [], 0)[0]:
            said = os.read(self._status, 16)
            # A warden that says nothing was killed with its group.
            self._code = int(said) if said else -signal.SIGKILL
        return self._code

    def wait(self, timeout: float) -> int:
        """The exit code; raises :class:`subprocess.TimeoutExpired`."""
        deadline = time.monotonic() + timeout
        while (code := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired("worker", timeout)
            select.select([self._status], [], [], left)
        return code

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the group, unless it was killed."""
        if not self._killed:
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill the group; its own children are in it, unless they left it.

        Once: the warden lives until then, so that its number means nobody else.
        """
        if self._killed:
            return
        self._killed = True
        try:
            os.killpg(self.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has not come to make the group yet
            os.kill(self.pid, signal.SIGKILL)

    def close(self) -> None:
        """Free the descriptor."""
        os.close(self._status)


@dataclass(frozen=True, slots=True)
class _Zygote:
    process: subprocess.Popen[bytes]
    connection: socket.socket

    def end(self) -> None:
        """Ends with its connection."""
        self.connection.close()
        with suppress(subprocess.TimeoutExpired):
            self.process.wait(timeout=1)
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()


_LOCK = threading.Lock()
_ZYGOTES: dict[tuple[object, ...], _Zygote] = {}


def start(
    confinement: Confinement | None,
    modules: Sequence[str],
    *,
    requests: int,
    replies: int,
    output: int,
) -> WorkerProcess:
    """A new worker with these ends of pipes; ``modules`` are imported before it is forked.

    Raises :class:`Stillborn`.
    """
    environment = _environment(confined=confinement is not None)
    order: dict[str, Any] = {
        "confinement": None if confinement is None else encode(confinement),
        "environment": environment,
        "folder": os.getcwd(),
    }
    message = json.dumps(order).encode()
    status, theirs = os.pipe()
    try:
        with _LOCK:
            for fresh in (False, True):
                zygote = _zygote(environment, confinement is not None, modules, fresh=fresh)
                with suppress(OSError, ValueError):
                    descriptors = [requests, replies, output, theirs]
                    socket.send_fds(zygote.connection, [message], descriptors)
                    return WorkerProcess(int(zygote.connection.recv(32)), status)
        raise Stillborn("the process that workers are forked from does not answer", "")
    except Stillborn:
        os.close(status)
        raise
    finally:
        os.close(theirs)


def _zygote(
    environment: Mapping[str, str], confined: bool, modules: Sequence[str], *, fresh: bool
) -> _Zygote:
    """The zygote for such workers: the one that is there, or a new one."""
    early = {n: v for n, v in environment.items() if n.startswith(_READ_AT_START)}
    key = (confined, tuple(modules), tuple(sorted(early.items())), os.getpid())
    if fresh and key in _ZYGOTES:
        _ZYGOTES.pop(key).end()
    if key not in _ZYGOTES:
        _ZYGOTES[key] = _started(environment, modules)
        for old in list(_ZYGOTES)[:-MOST_ZYGOTES]:
            _ZYGOTES.pop(old).end()
    _ZYGOTES[key] = _ZYGOTES.pop(key)  # the one used last is the last to go
    return _ZYGOTES[key]


def _started(environment: Mapping[str, str], modules: Sequence[str]) -> _Zygote:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cake.judge.zygote", str(theirs.fileno()), *modules],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=printed,
            pass_fds=(theirs.fileno(),),
            start_new_session=True,
            env=dict(environment),
        )
        theirs.close()
        ours.settimeout(START_SECONDS)
        said = b""
        with suppress(OSError):
            said = ours.recv(MESSAGE_BYTES)
        if said == READY:
            return _Zygote(process, ours)
        _Zygote(process, ours).end()
        printed.seek(0)
        text = printed.read().decode(errors="replace")
    raise Stillborn(f"the process ended with exit code {process.returncode}", text)


def _environment(*, confined: bool) -> dict[str, str]:
    """The parent's environment, with this very package first on the path.

    A confined child sees only what Python and CUDA need of it: variables hold passwords.
    """
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    kept = {n: v for n, v in os.environ.items() if not confined or n.startswith(_PASSED_ON)}
    return {**kept, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


@atexit.register
def _end_all() -> None:
    """No process outlives this one."""
    for key in [key for key in _ZYGOTES if key[-1] == os.getpid()]:
        _ZYGOTES.pop(key).end()
