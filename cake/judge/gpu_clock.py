"""What the clocks of a GPU share: how the L2 cache is emptied, and which clock there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cake.judge.cupti import CuptiClock, CuptiUnavailable
from cake.runtime import driver

# Half of the flush buffer is read into the other half, and each has to be twice the cache.
FLUSH_FACTOR = 4

# A pass writes 4 and reads 2 caches: 50 MiB at 5 TB/s take at least 60 us. The estimate is on the
# short side, so that the passes outlast the host's enqueueing.
PASS_SECONDS = 30e-6

EVENTS = "CUDA events"


class Clock(Protocol):
    """Device time between two moments of a stream."""

    name: str

    def begin(self) -> None:
        """Start a sample."""

    def end(self) -> float:
        """End the sample and wait for it; milliseconds."""


def best_clock(stream: Callable[[], int], events: Clock) -> tuple[Clock, str]:
    """CUPTI where it is installed and works, else ``events``, with the reason why."""
    try:
        return CuptiClock(stream), ""
    except CuptiUnavailable as reason:
        return events, str(reason)


def reset_persisting_l2() -> None:
    """Give lines that a kernel has marked to stay in L2 back to all (CUDA driver API)."""
    driver.checked(driver.driver().cuCtxResetPersistingL2Cache(), "cuCtxResetPersistingL2Cache")
