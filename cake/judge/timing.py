"""Interleaved sampling of a candidate and its baseline, in the child process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from cake.judge.arguments import POISONS, Arguments
from cake.judge.devices import Device
from cake.judge.protocol import Array
from cake.judge.verdict import Columns
from cake.workloads import Problem

ROTATIONS = 3  # sets of buffers; the pointers change from sample to sample

COLUMN_SAMPLES = 9

Call = Callable[[], object]
Bind = Callable[[Mapping[str, Any]], Call]
Keep = Callable[[int, int, Arguments], None]


def _nothing() -> None:
    """A side without memory of its own has nothing to reset."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """One of the two that are timed: how it is bound to buffers, and what clears its own memory
    before a call."""

    bind: Bind
    reset: Call = _nothing


@dataclass(slots=True)
class _Side:
    """A contender's call on every set of buffers, and its samples."""

    calls: list[Call]
    reset: Call
    host_seconds: float = 0.0
    samples: list[float] = field(default_factory=list)


class Stopwatch:
    """Buffers and contents for the timed calls of one problem.

    Before every call, outside the timed window: the inputs are replaced by those of another of
    the ``contents``, outputs and workspaces are poisoned, the L2 cache is flushed. Candidate and
    baseline alternate in the order ABBA.
    """

    def __init__(
        self, device: Device, problem: Problem, contents: Sequence[Mapping[str, Array]]
    ) -> None:
        self._device = device
        self._sets = [Arguments(device, problem, POISONS[0]) for _ in range(ROTATIONS)]
        self._contents = [self._uploaded(arrays) for arrays in contents]

    def _uploaded(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        buffers = {}
        for name, array in arrays.items():
            flat = array.reshape(-1).view("u1")
            buffers[name] = self._device.allocate(flat.size)
            self._device.upload(buffers[name], 0, flat)
        return buffers

    def measure(
        self,
        contenders: Sequence[Contender],
        *,
        warmup: int,
        samples: int,
        keep: Keep | None = None,
        swapped: bool = False,
    ) -> list[list[float]]:
        """Milliseconds per sample for each contender, the first of which is the candidate; the
        last one starts if ``swapped``.

        ``keep(sample, content, arguments)`` is called after every timed call of the candidate.
        """
        sides = [self._side(contender) for contender in contenders]
        for number in range(max(1, warmup)):
            for side in sides:
                self._warm_up(side, number)
        # The same for both, so that they meet the device in the same state.
        host_seconds = max(side.host_seconds for side in sides)
        for number in range(samples):
            forward = (number % 2 == 0) is not swapped
            for side in sides if forward else reversed(sides):
                arguments, content = self._prepare(side, number)
                call = side.calls[number % ROTATIONS]
                side.samples.append(self._device.measure(call, host_seconds))
                if keep is not None and side is sides[0]:
                    keep(number, content, arguments)
        return [side.samples for side in sides]

    def columns(self, contender: Contender) -> Columns:
        """Times on a warm L2 and in a graph, and the host's time per call."""
        side = self._side(contender)
        self._warm_up(side, 0)
        call = side.calls[0]
        seconds = side.host_seconds
        warm = [self._device.measure(call, seconds, cold=False) for _ in range(COLUMN_SAMPLES)]
        host = []
        for _ in range(COLUMN_SAMPLES):
            self._device.synchronize()
            start = time.perf_counter()
            call()
            host.append(time.perf_counter() - start)
        self._device.synchronize()
        captured = self._device.graph(call)
        graphed = []
        if captured is not None:
            graphed = [self._device.measure(captured, seconds) for _ in range(COLUMN_SAMPLES)]
        return Columns(
            warm_ms=median(warm),
            graph_ms=median(graphed) if graphed else None,
            host_us=median(host) * 1e6,
        )

    def _side(self, contender: Contender) -> _Side:
        calls = [contender.bind(each.arrays()) for each in self._sets]
        return _Side(calls, contender.reset)

    def _prepare(self, side: _Side, number: int) -> tuple[Arguments, int]:
        arguments = self._sets[number % ROTATIONS]
        # The same buffers see other contents each time that they come round.
        content = (number % ROTATIONS + number // ROTATIONS) % len(self._contents)
        arguments.refresh(self._contents[content])
        side.reset()
        return arguments, content

    def _warm_up(self, side: _Side, number: int) -> None:
        self._prepare(side, number)
        self._device.synchronize()
        start = time.perf_counter()
        side.calls[number % ROTATIONS]()
        # The first call may build or load; the least of all is what a call costs later.
        seconds = time.perf_counter() - start
        side.host_seconds = min(side.host_seconds or seconds, seconds)
        self._device.synchronize()
