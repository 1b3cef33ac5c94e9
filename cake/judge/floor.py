"""The physics floor: no kernel can be faster than its bytes and its operations allow."""

from __future__ import annotations

from cake.targets import get, names
from cake.targets.rates import Part
from cake.workloads import Problem

SLACK = 0.97
"""A time below this share of the floor is impossible; the rest is the clock's resolution."""


def part_named(device: str) -> Part | None:
    """The part that a driver's device name means (``NVIDIA H200`` is the H200 SXM)."""
    words = device.split()
    parts = (part for name in names() for part in get(name).parts)
    return next((part for part in parts if part.name.split()[0] in words), None)


def floor_ms(problem: Problem, device: str) -> float | None:
    """Least milliseconds for ``problem`` on the device of that name; None where it is not known.

    Operations at the highest dense tensor rate that the types admit, at the highest clock; bytes at
    the sheet's bandwidth, without what can stay in L2 when the kernel ends. Both are generous: a
    time below them is a fault of the measurement, whatever it shows.
    """
    part = part_named(device)
    if part is None:
        return None
    clock = max(part.clock, part.measured.clock_high if part.measured else 0.0)
    bits = min(problem.dtype_of(s.name).itemsize * 8 for s in problem.contract.inputs)
    rate = part.bf16_tensor * (clock / part.clock) * (2.0 if bits <= 8 else 1.0)
    from_memory = max(problem.bytes_moved - part.l2, 0)
    return 1e3 * max(problem.flops / rate, from_memory / part.dram)


def impossible(problem: Problem, device: str, milliseconds: float) -> str:
    """Why a time cannot be; empty for one that can."""
    floor = floor_ms(problem, device)
    if floor is None or milliseconds >= SLACK * floor:
        return ""
    return (
        f"{milliseconds:.4g} ms is below the physics floor of {floor:.4g} ms: bytes and operations "
        "take longer than that"
    )
