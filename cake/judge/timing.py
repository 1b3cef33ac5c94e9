"""Interleaved sampling of a candidate and its baseline, in the child process."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from cake.judge.arguments import POISONS, Arguments
from cake.judge.devices import Device
from cake.judge.protocol import Array
from cake.workloads import Problem

ROTATIONS = 3  # sets of buffers; the pointers change from sample to sample

Call = Callable[[], object]
Bind = Callable[[Mapping[str, Any]], Call]
Keep = Callable[[int, int, Arguments], None]


@dataclass(slots=True)
class _Side:
    """One of the two that are timed: its call on every set of buffers, and its samples."""

    calls: list[Call]
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
        self, binds: Sequence[Bind], *, warmup: int, samples: int, keep: Keep
    ) -> list[list[float]]:
        """Milliseconds per sample for each of ``binds``, the first of which is the candidate.

        ``keep(sample, content, arguments)`` is called after every timed call of the candidate.
        """
        sides = [_Side([bind(each.arrays()) for each in self._sets]) for bind in binds]
        for number in range(max(1, warmup)):
            for side in sides:
                self._warm_up(side, number)
        for number in range(samples):
            for side in sides if number % 2 == 0 else reversed(sides):
                arguments, content = self._prepare(number)
                call = side.calls[number % ROTATIONS]
                side.samples.append(self._device.measure(call, side.host_seconds))
                if side is sides[0]:
                    keep(number, content, arguments)
        return [side.samples for side in sides]

    def _prepare(self, number: int) -> tuple[Arguments, int]:
        arguments = self._sets[number % ROTATIONS]
        # The same buffers see other contents each time that they come round.
        content = (number % ROTATIONS + number // ROTATIONS) % len(self._contents)
        arguments.refresh(self._contents[content])
        return arguments, content

    def _warm_up(self, side: _Side, number: int) -> None:
        self._prepare(number)
        self._device.synchronize()
        start = time.perf_counter()
        side.calls[number % ROTATIONS]()
        # The first call may build or load; the least of all is what a call costs later.
        seconds = time.perf_counter() - start
        side.host_seconds = min(side.host_seconds or seconds, seconds)
        self._device.synchronize()
