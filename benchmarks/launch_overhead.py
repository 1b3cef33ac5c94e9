"""Host time of a launch: how long a call of ``LoadedKernel.launch`` keeps the caller.

    python -m benchmarks.launch_overhead [--json]

needs a GPU of compute capability 9.0 and torch. Each row is the median over many launches with
known shapes, in microseconds; `driver only` is the same launch through cuLaunchKernelEx with
everything prepared, which no library can undercut. The GPU is idle before each batch, and a batch
is shorter than the driver's launch queue, so that no launch waits for another.
"""

from __future__ import annotations

import argparse
import itertools
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

from cake.codegen.build import compile_cubin
from cake.runtime import driver
from cake.runtime.kernel import LoadedKernel
from tests.runtime.gpu_kernels import AXPY, TMA_COPY, Sample

BATCH = 200
BATCHES = 50


def microseconds(call: Callable[[], object]) -> float:
    """Median over the batches of the mean time of a call within a batch."""
    for _ in range(20):
        call()
    means = []
    for _ in range(BATCHES):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        means.append((time.perf_counter() - start) / BATCH * 1e6)
    return statistics.median(means)


def load(sample: Sample) -> LoadedKernel:
    name = sample.abi.name
    cubin = compile_cubin(sample.source, name=name, target=sample.abi.target).cubin
    return LoadedKernel(cubin, sample.abi)


def driver_only(kernel: LoadedKernel) -> Callable[[], object]:
    """The driver call of the kernel's only plan, without anything before it."""
    (plan,) = kernel._plans.values()
    call = driver.driver().cuLaunchKernelEx
    function = kernel._functions[plan.device]
    return lambda: call(plan.config, function, plan.parameters, 0)


def rotating(calls: list[Callable[[], object]]) -> Callable[[], object]:
    """Calls one after the other, so that addresses change from launch to launch."""
    position = 0

    def next_call() -> object:
        nonlocal position
        position = (position + 1) % len(calls)
        return calls[position]()

    return next_call


def measure() -> dict[str, float]:
    axpy, tma = load(AXPY), load(TMA_COPY)
    flat = [torch.zeros(4096, device="cuda") for _ in range(16)]
    boxes = [torch.zeros(1, 64, 64, device="cuda") for _ in range(16)]

    def axpy_of(x: Any, z: Any) -> Callable[[], object]:
        arguments = {"x": x, "y": x, "z": z, "alpha": 1.0}
        return lambda: axpy.launch(arguments)

    def tma_of(x: Any, y: Any) -> Callable[[], object]:
        arguments = {"x": x, "y": y}
        return lambda: tma.launch(arguments)

    rows = {
        "3 pointers, 2 scalars": microseconds(axpy_of(flat[0], flat[1])),
        "3 pointers, 2 scalars, driver only": microseconds(driver_only(axpy)),
        "2 tensor maps": microseconds(tma_of(boxes[0], boxes[1])),
        "2 tensor maps, driver only": microseconds(driver_only(tma)),
    }
    pairs = itertools.pairwise(boxes)
    rows["2 tensor maps, 15 address pairs"] = microseconds(rotating([tma_of(*p) for p in pairs]))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    as_json = parser.parse_args().json
    rows = measure()
    device = driver.device(0).name
    if as_json:
        print(json.dumps({"device": device, "microseconds": rows}))
        return
    print(f"host time of a launch on {device}, microseconds")
    for name, value in rows.items():
        print(f"{name:40} {value:6.2f}")


if __name__ == "__main__":
    main()
