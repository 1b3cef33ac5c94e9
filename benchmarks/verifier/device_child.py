"""One mutant on the GPU, in a process that may hang: says what it is doing, line by line.

Reads a request from standard input: ``text``, ``workload``, ``shapes`` and ``rounds``. Writes JSON
lines with ``state`` ``built``, ``launched`` before and ``answered`` after each launch, and at the
end ``right``, ``wrong``, ``no build`` or ``error`` with ``detail``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from cake.codegen.cache import KernelCache
from cake.codegen.compile import compile_program
from cake.judge.candidate import Candidate, Refused
from cake.judge.device_cuda import CudaArray, CudaBuffer
from cake.judge.ir_runner import RUNNER, IrRunner
from cake.kernels import launchable, poisoned
from cake.lang.elaborate import parse
from cake.runtime import driver
from cake.runtime.driver import checked
from cake.runtime.kernel import architecture
from cake.workloads import Problem, compare, generate, get, problem

DTYPE = "bf16"


def main() -> None:
    """Serve one request."""
    request = json.loads(sys.stdin.read())
    try:
        _build(request["text"])
    except Exception as e:
        # Whatever stops the build, the mutant never meets the device.
        _say(state="no build", detail=f"{type(e).__name__}: {e}"[:500])
        return
    _say(state="built")
    try:
        _say(**_run(request))
    except Exception as e:
        # An error of the driver is a result: the mutant was caught by the device.
        _say(state="error", detail=f"{type(e).__name__}: {e}"[:500])


def _build(text: str) -> None:
    """Compile into the cache, so that no launch waits for the compiler."""
    cache = KernelCache(warn=lambda finding: None)
    for program in parse(text, "mutant.py").programs:
        compile_program(program, cache=cache, arch=architecture(program.target, driver.device(0)))


def _run(request: Mapping[str, Any]) -> dict[str, Any]:
    checked(driver.driver().cuCtxSetCurrent(driver.primary_context(0)), "cuCtxSetCurrent")
    ran = 0
    for instance in _problems(request):
        try:
            runner = IrRunner(
                Candidate(runner=RUNNER, entry="mutant", text=request["text"]), instance
            )
        except Refused:
            continue
        for seed in range(request["rounds"]):
            wrong = _trial(runner, instance, seed)
            ran += 1
            if wrong is not None:
                return {"state": "wrong", "detail": f"{dict(instance.dims)}: {wrong}", "runs": ran}
    return {"state": "right" if ran else "no build", "detail": "", "runs": ran}


def _problems(request: Mapping[str, Any]) -> Iterator[Problem]:
    programs = parse(request["text"], "mutant.py").programs
    for shape in request["shapes"]:
        instance = problem(get(request["workload"]), shape, DTYPE)
        if not launchable(programs, instance):
            yield instance


def _trial(runner: IrRunner, instance: Problem, seed: int) -> str | None:
    """What one launch gets wrong, None if nothing."""
    contract, shape = instance.contract, {**instance.parameters, **instance.dims}
    inputs = generate(contract, shape, instance.dtype, "normal", seed)
    outputs = {
        t.name: poisoned(instance.shape_of(t.name), instance.dtype_of(t.name))
        for t in contract.tensors
        if not t.is_input
    }
    arrays = {name: _upload(a) for name, a in {**inputs, **outputs}.items()}
    _say(state="launched", problem=str(dict(instance.dims)), round=seed)
    runner.run(arrays)
    checked(driver.driver().cuCtxSynchronize(), "the kernel")
    _say(state="answered")
    for name, host in outputs.items():
        _download(arrays[name], host)
    result = compare(contract, shape, instance.dtype, inputs, outputs)
    return None if result.ok else result.detail


def _upload(host: Any) -> CudaArray:
    data = np.ascontiguousarray(host)
    array = CudaArray(CudaBuffer(data.nbytes), 0, data.shape, data.dtype)
    if data.nbytes:
        copied = driver.driver().cuMemcpyHtoD(array.data_ptr(), data.ctypes.data, data.nbytes)
        checked(copied, "cuMemcpyHtoD")
    return array


def _download(array: CudaArray, host: Any) -> None:
    if host.nbytes:
        copied = driver.driver().cuMemcpyDtoH(host.ctypes.data, array.data_ptr(), host.nbytes)
        checked(copied, "cuMemcpyDtoH")


def _say(**line: Any) -> None:
    print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
