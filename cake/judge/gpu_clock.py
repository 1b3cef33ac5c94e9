"""What the clocks of a GPU share: emptying L2, hiding the host's time, and which clock there is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from cake.codegen.abi import KernelAbi, ScalarArg, ScalarSpec
from cake.codegen.build import compile_cubin
from cake.judge.cupti import CuptiClock, CuptiUnavailable
from cake.runtime import driver
from cake.runtime.kernel import LoadedKernel
from cake.targets import get, names

# Half of the flush buffer is read into the other half, and each has to be twice the cache.
FLUSH_FACTOR = 4

# The device spins for so long before a timed call, so that its host enqueues it meanwhile: a slow
# host would else be counted as device time, and for one side of a ratio more than for the other.
SPIN_FACTOR = 3.0  # times the host's seconds for the call
SPIN_LEAST_SECONDS = 40e-6  # for the clock's own calls
SPIN_MOST_SECONDS = 5e-3  # a call that takes the host longer waits for the device itself

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


class Spinner:
    """A kernel of one thread that keeps a stream of GPU 0 busy and leaves the caches alone."""

    _SOURCE = """
extern "C" __global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}
"""

    def __init__(self) -> None:
        here = driver.device(0)
        self._hertz = here.sm_clock_khz * 1e3
        target = target_of(here.capability)
        built = compile_cubin(
            self._SOURCE, name="spin", target=target, include_cuda_headers=False, lineinfo=False
        )
        self._kernel = LoadedKernel(built.cubin, _spin_abi(target))

    def enqueue(self, host_seconds: float, stream: int) -> None:
        """Keep ``stream`` busy while the host enqueues a call that takes it ``host_seconds``."""
        seconds = min(SPIN_FACTOR * host_seconds + SPIN_LEAST_SECONDS, SPIN_MOST_SECONDS)
        self._kernel.launch({"cycles": int(seconds * self._hertz)}, stream=stream)


def _spin_abi(target: str) -> KernelAbi:
    return KernelAbi(
        name="spin",
        target=target,
        tensors=(),
        scalars=(ScalarSpec(name="cycles", dtype="i64"),),
        args=(ScalarArg(name="cycles"),),
        workspaces=(),
        guards=(),
        grid=("1", "1", "1"),
        cluster=None,
        block=1,
        smem_bytes=0,
        pdl=False,
        min_blocks=1,
    )


def target_of(capability: tuple[int, int]) -> str:
    """The target to build for on a GPU of that compute capability."""
    exact = (name for name in names() if get(name).capability == capability)
    return next(exact, f"sm_{capability[0]}{capability[1]}")
