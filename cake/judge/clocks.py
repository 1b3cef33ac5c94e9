"""Clocks, temperature and throttle reasons of GPU 0 while something is timed, through NVML.

NVML needs ``nvidia-ml-py`` (the extra ``nvml``); without it nothing is recorded and the record says
so. Nothing about the device is changed. (NVML API reference, "Clocks Event Reasons".)
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from importlib import import_module
from types import TracebackType
from typing import Any, Self

POLL_SECONDS = 0.2

_REASONS = {
    0x2: "application clocks",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "sync boost",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
    0x100: "display clocks",
}
"""Bits of nvmlClocksEventReasons; that the GPU idles (0x1) slows nothing down."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clocks:
    """The range of clocks in MHz, the highest temperature in degrees Celsius, the reasons for lower
    clocks. ``problem`` says why there is nothing else."""

    sm_low: int = 0
    sm_high: int = 0
    memory_low: int = 0
    memory_high: int = 0
    temperature: int = 0
    throttled_by: tuple[str, ...] = ()
    problem: str = ""


class ClockWatch:
    """Looks at the clocks several times a second. A context manager around what is timed."""

    def __init__(self, *, on_gpu: bool) -> None:
        self._seen: list[tuple[int, int, int, int]] = []
        self._problem = "" if on_gpu else "not on a GPU"
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._poll, daemon=True)

    def __enter__(self) -> Self:
        if not self._problem:
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _poll(self) -> None:
        try:
            nvml: Any = import_module("pynvml")
        except ImportError:
            self._problem = "NVML is not installed (pip install 'cake-ir[nvml]')"
            return
        try:
            nvml.nvmlInit()
            handle = nvml.nvmlDeviceGetHandleByIndex(0)
            while not self._stop.is_set():
                self._seen.append(_state(nvml, handle))
                self._stop.wait(POLL_SECONDS)
            nvml.nvmlShutdown()
        except nvml.NVMLError as error:
            self._problem = f"NVML: {error}"

    def clocks(self) -> Clocks:
        """What was seen."""
        if not self._seen:
            return Clocks(problem=self._problem or "nothing was seen")
        sm, memory, temperature, reasons = zip(*self._seen, strict=True)
        bits = 0
        for mask in reasons:
            bits |= mask
        return Clocks(
            sm_low=min(sm),
            sm_high=max(sm),
            memory_low=min(memory),
            memory_high=max(memory),
            temperature=max(temperature),
            throttled_by=tuple(name for bit, name in _REASONS.items() if bits & bit),
            problem=self._problem,
        )


def _state(nvml: Any, handle: Any) -> tuple[int, int, int, int]:
    """SM clock, memory clock, temperature, reasons."""
    return (
        int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle)),
    )
