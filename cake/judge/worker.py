"""The child process: builds a candidate, runs it on guarded buffers, times it.

Forked by :mod:`cake.judge.zygote`. It reports facts; what they amount to, the parent decides.
"""

from __future__ import annotations

import os
import platform
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from cake.judge import runners
from cake.judge.arguments import POISONS, Arguments
from cake.judge.baselines import BaselineUnavailable, bind_baseline
from cake.judge.candidate import BuildError, Refused, Runner, RunnerFactory
from cake.judge.devices import Device, open_device
from cake.judge.protocol import (
    Array,
    Build,
    Built,
    Failed,
    Lap,
    Lapped,
    Message,
    Open,
    Ran,
    Ready,
    Run,
    Time,
    Timed,
    from_line,
    load_array,
    save_arrays,
    to_line,
)
from cake.judge.shared import shared_arrays
from cake.judge.timing import Contender, Stopwatch
from cake.workloads import Problem, get, problem

TRACE_KEPT = 8000  # characters; the end says what happened


class Worker:
    """The state between requests: the open device, the problem and its built candidate."""

    def __init__(self, isolation: str) -> None:
        self.isolation = isolation
        self.device: Device | None = None
        self.factory: RunnerFactory | None = None
        self.problem: Problem | None = None
        self.runner: Runner | None = None
        self._shared: dict[str, Mapping[str, Any]] = {}

    def answer(self, message: Message) -> Message:
        """Carry out one request. Exceptions of the candidate become :class:`Failed`."""
        try:
            match message:
                case Open():
                    return self._open(message)
                case Build():
                    return self._build(message)
                case Run():
                    return self._run(message)
                case Lap():
                    return self._lap(message)
                case Time():
                    return self._time(message)
        except Refused as refusal:
            return Failed(status="refused", message=str(refusal), trace="")
        except BuildError as error:
            return Failed(status="build_failed", message=str(error), trace="")
        except Exception as error:
            # Whatever it is, it ends this process: a CUDA error spoils all later calls.
            text = f"{type(error).__name__}: {error}"
            trace = "".join(traceback.format_tb(error.__traceback__))
            return Failed(status="crashed", message=text, trace=trace[-TRACE_KEPT:])
        return Failed(status="crashed", message=f"{type(message).__name__} is no request", trace="")

    def _open(self, request: Open) -> Ready:
        runners.load_plugins(request.plugins)
        self.factory = runners.find(request.runner)
        self.device = open_device(request.device)
        host = {"python": platform.python_version(), "platform": platform.platform()}
        host["isolation"] = self.isolation
        return Ready(environment={**host, **self.device.environment()})

    def _build(self, request: Build) -> Built:
        contract = get(request.workload)
        self.problem = problem(contract, request.case.shape, request.case.dtype)
        if self.factory is None:
            raise RuntimeError("Open has to come first")
        self.runner = self.factory(request.candidate, self.problem)
        self._shared.clear()
        return Built()

    def _run(self, request: Run) -> Ran:
        device, instance, runner = self._built()
        inputs = _load_inputs(instance, Path(request.inputs))
        findings = []
        passes = []  # kept, so that the second pass gets other pointers
        for number, poison in enumerate(POISONS):
            arguments = Arguments(device, instance, poison)
            passes.append(arguments)
            arguments.load(inputs)
            runners.reset_of(runner)()
            runner.run(arguments.arrays())
            device.synchronize()
            findings += arguments.findings(inputs)
            save_arrays(Path(request.outputs) / str(number), arguments.outputs())
        return Ran(findings=tuple(dict.fromkeys(findings)))

    def _lap(self, request: Lap) -> Lapped:
        device, instance, runner = self._built()
        if request.tensors not in self._shared:
            self._shared[request.tensors] = shared_arrays(instance, Path(request.tensors))
        runner.run(self._shared[request.tensors])
        device.synchronize()
        return Lapped()

    def _time(self, request: Time) -> Timed:
        device, instance, runner = self._built()
        contents = [_load_inputs(instance, Path(folder)) for folder in request.contents]
        kept: dict[str, int] = {}

        def keep(sample: int, content: int, arguments: Arguments) -> None:
            if sample in request.keep:
                save_arrays(Path(request.outputs) / str(sample), arguments.outputs())
                kept[str(sample)] = content

        contenders = [_contender(runner)]
        problem_text = "no baseline was asked for"
        if request.baseline is not None or request.rival is not None:
            try:
                contenders.append(self._other(request, instance))
                problem_text = ""
            except BaselineUnavailable as missing:
                problem_text = str(missing)
        watch = Stopwatch(device, instance, contents)
        samples = watch.measure(
            contenders,
            warmup=request.warmup,
            samples=request.samples,
            keep=keep,
            swapped=request.swapped,
        )
        again = contenders[1:] * 2 if request.noise_samples else []
        same = watch.measure(again, warmup=1, samples=request.noise_samples) if again else []
        columns = [watch.columns(c) for c in contenders] if request.columns else []
        return Timed(
            clock=device.clock,
            candidate_ms=tuple(samples[0]),
            baseline_ms=tuple(samples[1]) if len(samples) > 1 else (),
            baseline_problem=problem_text,
            kept=kept,
            same_ms=tuple(map(tuple, same)),
            candidate_columns=columns[0] if columns else None,
            baseline_columns=columns[1] if len(columns) > 1 else None,
        )

    def _other(self, request: Time, instance: Problem) -> Contender:
        """What the candidate is timed beside."""
        if request.rival is not None:
            return _contender(runners.find(request.rival.runner)(request.rival, instance))
        assert request.baseline is not None
        return Contender(bind=bind_baseline(instance, request.baseline))

    def _built(self) -> tuple[Device, Problem, Runner]:
        if self.device is None or self.problem is None or self.runner is None:
            raise RuntimeError("Open and Build have to come first")
        return self.device, self.problem, self.runner


def _contender(runner: Runner) -> Contender:
    return Contender(bind=runners.bind_of(runner), reset=runners.reset_of(runner))


def _load_inputs(instance: Problem, folder: Path) -> dict[str, Array]:
    return {
        spec.name: load_array(
            folder, spec.name, instance.shape_of(spec.name), instance.dtype_of(spec.name)
        )
        for spec in instance.contract.inputs
    }


def _lines(stream: BinaryIO) -> Iterator[bytes]:
    while line := stream.readline():
        yield line


def main(read_fd: int, write_fd: int, isolation: str) -> None:
    """Answer requests until the parent closes its end or the candidate has crashed."""
    worker = Worker(isolation)
    with os.fdopen(read_fd, "rb") as requests, os.fdopen(write_fd, "wb") as replies:
        for line in _lines(requests):
            answer = worker.answer(from_line(line))
            replies.write(to_line(answer))
            replies.flush()
            if isinstance(answer, Failed) and answer.status == "crashed":
                return
