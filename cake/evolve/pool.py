"""Worker processes: tasks go out, answers come back in the order in which they are ready."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from cake.evolve.setting import Setting
from cake.evolve.space import Point

TASK_SECONDS = 120.0
POLL_SECONDS = 0.2
KILL_SECONDS = 2.0
TAIL_CHARACTERS = 2000
READ_BYTES = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class Task:
    """Work on one or several points; ``kind`` is a name that the worker knows."""

    kind: str
    points: tuple[Point, ...]

    def line(self) -> bytes:
        points = [{"variant": p.variant, "meta": dict(p.meta)} for p in self.points]
        return json.dumps({"kind": self.kind, "points": points}).encode() + b"\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What became of a task: ``results`` for its points, or ``failure`` (``crashed``, ``hang``)
    with the end of what the process printed."""

    task: Task
    results: tuple[dict[str, Any], ...] = ()
    failure: str = ""
    detail: str = ""


class Pool:
    """Up to ``size`` workers with one setting, started when they are needed.

    A context manager: on the way out every worker is ended.
    """

    def __init__(self, setting: Setting, size: int, seconds: float = TASK_SECONDS) -> None:
        self._setting = setting.to_json().encode() + b"\n"
        self._size = size
        self._seconds = seconds
        self._idle: list[_Worker] = []
        self._busy: list[_Worker] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for worker in self._idle:
            worker.kill()

    def run(self, tasks: Sequence[Task]) -> Iterator[Answer]:
        """The answers to ``tasks`` as they come; at most ``size`` are worked on at once.

        A caller that stops early leaves tasks behind: their workers are ended.
        """
        waiting = deque(tasks)
        try:
            while waiting or self._busy:
                while waiting and len(self._busy) < self._size:
                    worker = self._idle.pop() if self._idle else _Worker(self._setting)
                    self._busy.append(worker)
                    worker.start(waiting.popleft(), self._seconds)
                yield from self._answers()
        finally:
            for worker in self._busy:
                worker.kill()
            self._busy.clear()

    def _answers(self) -> Iterator[Answer]:
        """The answers that are there within a moment."""
        for worker, late in _ready(self._busy):
            answer = worker.overdue() if late else worker.answer()
            if answer is None:
                continue
            self._busy.remove(worker)
            if late or worker.ended:
                worker.kill()
            else:
                self._idle.append(worker)
            yield answer


def _ready(workers: Sequence[_Worker]) -> list[tuple[_Worker, bool]]:
    """Those that have written something or have ended, and, marked, those out of time.

    An answer that came in time counts, however late it is read.
    """
    with selectors.DefaultSelector() as selector:
        for worker in workers:
            selector.register(worker.output, selectors.EVENT_READ, worker)
        found = [key.data for key, _ in selector.select(POLL_SECONDS)]
    late = [w for w in workers if w not in found and time.monotonic() > w.deadline]
    return [*((w, False) for w in found), *((w, True) for w in late)]


class _Worker:
    """One child process and the task that it works on."""

    def __init__(self, setting: bytes) -> None:
        self._printed = tempfile.TemporaryFile()  # noqa: SIM115 (closed with the process)
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "cake.evolve.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._printed,
            start_new_session=True,  # Ctrl-C is for the parent, which ends its workers itself
            env=_environment(),
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._input = self._process.stdin
        self.output = self._process.stdout.fileno()
        self._answers = self._process.stdout
        self._read = b""
        self._task = Task(kind="", points=())
        self.deadline = 0.0
        self.ended = False
        self._send(setting)

    def start(self, task: Task, seconds: float) -> None:
        """Begin a task, which has ``seconds`` from now."""
        self._task = task
        self.deadline = time.monotonic() + seconds
        self._seconds = seconds
        self._send(task.line())

    def _send(self, line: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # the answer says how the process ended
            self._input.write(line)
            self._input.flush()

    def overdue(self) -> Answer:
        """The answer in place of one that did not come in time."""
        detail = f"no answer within {self._seconds:g} s"
        return Answer(task=self._task, failure="hang", detail=detail)

    def answer(self) -> Answer | None:
        """What is there by now: the answer, a failure, or None for a part of a line."""
        data = os.read(self.output, READ_BYTES)
        if not data:
            self.ended = True
            return Answer(task=self._task, failure="crashed", detail=self._ending())
        self._read += data
        if not self._read.endswith(b"\n"):
            return None
        answer, self._read = json.loads(self._read), b""
        if "failure" in answer:
            return Answer(task=self._task, failure="crashed", detail=answer["failure"])
        return Answer(task=self._task, results=tuple(answer["results"]))

    def _ending(self) -> str:
        """How the process ended, with the end of what it printed."""
        code = self._process.wait(timeout=KILL_SECONDS)
        how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
        self._printed.seek(0)
        tail = self._printed.read().decode(errors="replace")[-TAIL_CHARACTERS:].strip()
        return f"the process ended with {how}: {tail}" if tail else f"the process ended with {how}"

    def kill(self) -> None:
        """End the process and everything that it started."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=KILL_SECONDS)
        for stream in (self._input, self._answers, self._printed):
            with contextlib.suppress(OSError):
                stream.close()


def _environment() -> dict[str, str]:
    """The parent's environment, with this very package first on the path and one BLAS thread:
    there is a process for each core already."""
    root = str(Path(__file__).resolve().parents[2])
    path = [root, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "OPENBLAS_NUM_THREADS": "1"}
