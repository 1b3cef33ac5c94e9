"""The parent's handle on the child process: requests with deadlines, and a certain end."""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Self

from cake.judge.nursery import Stillborn, WorkerProcess, start
from cake.judge.protocol import LINE_LIMIT, Message, ProtocolError, from_line, to_line
from cake.judge.sandbox import Confinement

OUTPUT_LIMIT = 1 << 20  # bytes on stdout and stderr together
OUTPUT_KEPT = 1 << 14
POLL_SECONDS = 0.1
KILL_SECONDS = 2
READ_BYTES = 1 << 16
CLOSING_SECONDS = 0.5  # between the end of a process's pipes and its own


class ChildHang(Exception):
    """The child did not answer within its limit."""


class ChildDied(Exception):
    """The child ended, or had to be ended, without an answer."""


class Child:
    """A worker process in a process group of its own. A context manager: on the way out the whole
    group is killed, whatever it is doing."""

    def __init__(self, confinement: Confinement | None = None, modules: Sequence[str] = ()) -> None:
        request_read, self._request = os.pipe()
        self._reply, reply_write = os.pipe()
        self._output_fd, output_write = os.pipe()
        self._process: WorkerProcess | None = None
        self._tail: deque[bytes] = deque()
        self._failure = ""
        try:
            self._process = start(
                confinement,
                modules,
                requests=request_read,
                replies=reply_write,
                output=output_write,
            )
        except Stillborn as failure:
            self._failure = str(failure)
            self._tail.append(failure.output.encode())
        for handle in (request_read, reply_write, output_write):
            os.close(handle)
        self._selector = selectors.DefaultSelector()
        for fd in (self._request, self._reply, self._output_fd):
            os.set_blocking(fd, False)
        for fd in (self._reply, self._output_fd):
            self._selector.register(fd, selectors.EVENT_READ)
        self._outgoing = b""
        self._pending = b""
        self._printed = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Kill the group and free the pipes."""
        self._kill()
        self._selector.close()
        for handle in (self._request, self._reply, self._output_fd):
            os.close(handle)
        if self._process is not None:
            self._process.close()

    def stop(self) -> None:
        """Let the group stand still until :meth:`resume`."""
        if self._process is not None:
            self._process.signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Let the group go on."""
        if self._process is not None:
            self._process.signal(signal.SIGCONT)

    @property
    def output(self) -> str:
        """The last part of what the child printed."""
        return b"".join(self._tail)[-OUTPUT_KEPT:].decode(errors="replace")

    def ask(self, message: Message, seconds: float) -> Message:
        """Send ``message`` and wait for the answer.

        Raises :class:`ChildHang` after ``seconds``, :class:`ChildDied` if the child ends or
        floods its output, :class:`ProtocolError` if it answers with something else.
        """
        if self._process is None:
            raise ChildDied(f"{self._failure} before its answer")
        deadline = time.monotonic() + seconds
        if not self._outgoing:
            self._selector.register(self._request, selectors.EVENT_WRITE)
        self._outgoing += to_line(message)
        while b"\n" not in self._pending:
            left = deadline - time.monotonic()
            if left <= 0:
                self._kill()
                raise ChildHang(f"no answer within {seconds:g} s; the process was killed")
            self._wait(min(left, POLL_SECONDS))
        line, self._pending = self._pending.split(b"\n", 1)
        return from_line(line)

    def _wait(self, seconds: float) -> None:
        """Move what the pipes take and give within ``seconds``. The process is looked at first:
        what it wrote before its end is then still read."""
        assert self._process is not None
        ended = self._process.poll()
        closed = answering = False
        for key, _ in self._selector.select(seconds):
            if key.fd == self._request:
                self._write_some()
            elif key.fd == self._output_fd:
                self._read_output()
            else:
                data = os.read(self._reply, READ_BYTES)
                self._pending += data
                answering, closed = bool(data), not data
        if len(self._pending) > LINE_LIMIT:
            raise ProtocolError(f"an answer is longer than {LINE_LIMIT} bytes")
        if answering:
            return
        if closed:
            # A dying process closes its pipes a moment before it can be waited for.
            with contextlib.suppress(subprocess.TimeoutExpired):
                ended = self._process.wait(timeout=CLOSING_SECONDS)
        if ended is not None or closed:
            self._kill()
            self._read_output()
            how = "closed its pipe" if ended is None else f"ended {_ending(ended)}"
            raise ChildDied(f"the process {how} before its answer")

    def _write_some(self) -> None:
        try:
            written = os.write(self._request, self._outgoing)
        except BrokenPipeError:  # the reading side says how the child ended
            written = len(self._outgoing)
        self._outgoing = self._outgoing[written:]
        if not self._outgoing:
            self._selector.unregister(self._request)

    def _read_output(self) -> None:
        try:
            data = os.read(self._output_fd, READ_BYTES)
        except BlockingIOError:
            return
        if not data and self._output_fd in self._selector.get_map():
            self._selector.unregister(self._output_fd)
        self._printed += len(data)
        self._tail.append(data)
        while len(self._tail) > 1 and sum(map(len, self._tail)) - len(self._tail[0]) > OUTPUT_KEPT:
            self._tail.popleft()
        if self._printed > OUTPUT_LIMIT:
            self._kill()
            raise ChildDied(f"the process printed more than {OUTPUT_LIMIT} bytes")

    def _kill(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        # A process stuck in the driver cannot be reaped; waiting longer would hang the parent.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=KILL_SECONDS)


def _ending(code: int) -> str:
    if code >= 0:
        return f"with exit code {code}"
    try:
        return f"by {signal.Signals(-code).name}"
    except ValueError:
        return f"by signal {-code}"
