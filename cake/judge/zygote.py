"""The process that workers are forked from: it has imported what they need, and nothing else.

Started by :mod:`cake.judge.nursery` as ``python -m cake.judge.zygote SOCKET_FD [MODULE]...``. Each
message on the socket is an order for one worker, with four descriptors: requests, replies, output,
status. The answer is the process id of a *warden*, the leader of a group of its own, which waits
for the worker, writes to ``status`` how it ended, and stays until the group is killed. The zygote
runs no candidate's code, opens no GPU, and ends with its parent.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import traceback
import warnings
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module
from typing import Any, NoReturn

from cake.judge import worker
from cake.judge.sandbox import NONE, Confinement, confine, restrain

MESSAGE_BYTES = 1 << 17
DESCRIPTORS = 4
READY = b"ready"


def serve(connection: socket.socket, modules: Sequence[str]) -> None:
    """Import ``modules``, where they are installed, then answer orders until the parent is gone."""
    for name in modules:
        with suppress(ImportError):
            import_module(name)
    # Wardens that have ended need no one to wait for them.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # A library that has started threads is forked here before any of them has work.
    warnings.filterwarnings("ignore", category=DeprecationWarning, message=".*fork.*")
    connection.sendall(READY)
    while True:
        order, descriptors, _, _ = socket.recv_fds(connection, MESSAGE_BYTES, DESCRIPTORS)
        if not order:
            return
        pid = os.fork()
        if pid == 0:
            connection.close()
            _guard(json.loads(order), descriptors)
        for handle in descriptors:
            os.close(handle)
        connection.sendall(str(pid).encode())


def _guard(order: dict[str, Any], descriptors: Sequence[int]) -> NoReturn:
    """The warden: starts the worker, waits for it, says how it ended."""
    requests, replies, output, status = descriptors
    os.setsid()
    restrain()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    nothing = os.open(os.devnull, os.O_RDWR)
    pid = os.fork()
    if pid == 0:
        os.close(status)
        for source, target in ((nothing, 0), (output, 1), (output, 2)):
            os.dup2(source, target)
        os.close(output)
        _work(order, requests, replies)
    # Pipes that stay open here would hide that the worker has closed its own.
    for handle in (0, 1, 2):
        os.dup2(nothing, handle)
    for handle in (requests, replies, output):
        os.close(handle)
    _, ended = os.waitpid(pid, 0)
    os.write(status, str(os.waitstatus_to_exitcode(ended)).encode())
    while True:  # until the parent ends what is left of the group
        signal.pause()


def _work(order: dict[str, Any], requests: int, replies: int) -> NoReturn:
    """The worker, confined if the order says so; ends the process as a Python program ends."""
    code = 0
    try:
        restrain()
        os.chdir(order["folder"])
        os.environ.clear()
        os.environ.update(order["environment"])
        sys.argv = ["cake.judge.worker", str(requests), str(replies)]
        how = order["confinement"]
        isolation = NONE if how is None else confine(Confinement(**how))
        worker.main(requests, replies, isolation)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
        code = 1
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


if __name__ == "__main__":
    serve(socket.socket(fileno=int(sys.argv[1])), sys.argv[2:])
