"""Device time of several callables, interleaved, cold L2: CUDA events, medians.

Needs torch. The judge (``cake bench``) measures in fresh processes; this is the quick form that the
tables in docs/perf are made with.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping

import torch


class Flush:
    """Evicts L2 by writing twice its size, then reading as much, so that no dirty line is left."""

    def __init__(self) -> None:
        size = 2 * torch.cuda.get_device_properties(0).L2_cache_size // 4
        self.written = torch.empty(size, dtype=torch.float32, device="cuda")
        self.read = torch.zeros(size, dtype=torch.float32, device="cuda")

    def __call__(self) -> None:
        self.written.zero_()
        self.read.sum()


def interleaved(
    calls: Mapping[str, Callable[[], object]], *, samples: int = 30, warmup: int = 5
) -> dict[str, list[float]]:
    """Milliseconds of each call, ``samples`` each, the order reversed every other round."""
    flush = Flush()
    for call in calls.values():
        for _ in range(warmup):
            call()
    torch.cuda.synchronize()
    times: dict[str, list[float]] = {name: [] for name in calls}
    for i in range(samples):
        order = list(calls) if i % 2 == 0 else list(reversed(calls))
        for name in order:
            flush()
            start = torch.cuda.Event(enable_timing=True)
            stop = torch.cuda.Event(enable_timing=True)
            start.record()
            calls[name]()
            stop.record()
            stop.synchronize()
            times[name].append(start.elapsed_time(stop))
    return times


def median(values: list[float]) -> float:
    """Median of milliseconds."""
    return statistics.median(values)
