"""Runners for the judge's tests: one honest, the others each with one vice.

They work on numpy arrays and are loaded in the child by name (``plugins``).
"""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from cake.judge import BuildError, Candidate, Refused, register
from cake.workloads import Problem, reference_outputs

Tensors = Mapping[str, Any]
Act = Callable[[Problem, Tensors], None]


def compute(problem: Problem, tensors: Tensors) -> None:
    """The right outputs, by the reference."""
    contract = problem.contract
    inputs = {spec.name: tensors[spec.name] for spec in contract.inputs}
    shape = {**problem.dims, **problem.parameters}
    for name, value in reference_outputs(contract, shape, problem.dtype, inputs).items():
        tensors[name][...] = value


def runner(act: Act) -> None:
    """Register ``act`` under its own name."""

    class Fake:
        def __init__(self, candidate: Candidate, problem: Problem) -> None:
            self.problem = problem

        def run(self, tensors: Tensors) -> None:
            act(self.problem, tensors)

    register(act.__name__)(Fake)


def output(problem: Problem, tensors: Tensors) -> Any:
    return tensors[problem.contract.outputs[0].name]


runner(compute)


@runner
def wrong(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    output(problem, tensors).reshape(-1)[3] = 7


@runner
def zeros(problem: Problem, tensors: Tensors) -> None:
    for spec in problem.contract.outputs:
        tensors[spec.name][...] = 0


@runner
def constant(problem: Problem, tensors: Tensors) -> None:
    for spec in problem.contract.outputs:
        tensors[spec.name][...] = 1


@runner
def identity(problem: Problem, tensors: Tensors) -> None:
    first = tensors[problem.contract.inputs[0].name]
    for spec in problem.contract.outputs:
        tensors[spec.name][...] = np.resize(first, tensors[spec.name].shape)


@runner
def partial(problem: Problem, tensors: Tensors) -> None:
    """Leaves the last element as it found it."""
    last = output(problem, tensors).reshape(-1)[-1:]
    before = last.copy()
    compute(problem, tensors)
    last[...] = before


@runner
def hangs(problem: Problem, tensors: Tensors) -> None:
    time.sleep(60)


@runner
def hangs_with_children(problem: Problem, tensors: Tensors) -> None:
    """Ignores polite signals and has a child that would outlive it."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    print(f"child {child.pid}")
    child.wait()


@runner
def crashes_on_zero(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    if not tensors["x"].any():
        os.abort()


@runner
def raises(problem: Problem, tensors: Tensors) -> None:
    raise RuntimeError("CUDA_ERROR_ILLEGAL_ADDRESS " + 200_000 * ".")


@runner
def leaves(problem: Problem, tensors: Tensors) -> None:
    os._exit(0)


@runner
def exits(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    sys.exit(0)


@runner
def leaves_a_daemon(problem: Problem, tensors: Tensors) -> None:
    """Ends while a child of its own keeps all pipes open."""
    if os.fork() == 0:
        time.sleep(60)
    os._exit(0)


@runner
def floods(problem: Problem, tensors: Tensors) -> None:
    while True:
        print("x" * 1000)


@runner
def writes_input(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    tensors[problem.contract.inputs[0].name].reshape(-1)[0] = 42


@runner
def writes_behind(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    array = output(problem, tensors)
    ctypes.memset(array.ctypes.data + array.nbytes + 6, 0, 4)


@runner
def writes_before(problem: Problem, tensors: Tensors) -> None:
    compute(problem, tensors)
    ctypes.memset(output(problem, tensors).ctypes.data - 2, 0, 2)


@runner
def reads_behind(problem: Problem, tensors: Tensors) -> None:
    """Adds what lies behind the input to every output: NaN in the first pass."""
    compute(problem, tensors)
    array = tensors[problem.contract.inputs[0].name]
    end = ctypes.string_at(array.ctypes.data + array.nbytes, array.itemsize)
    output(problem, tensors)[...] += np.frombuffer(end, array.dtype)[0]


_CALLS = iter(range(10**9))


@runner
def varies(problem: Problem, tensors: Tensors) -> None:
    """Right each time, and different each time: it moves between two numbers a rounding apart."""
    compute(problem, tensors)
    y = output(problem, tensors).reshape(-1)
    if next(_CALLS) % 2:
        y.view("i4")[0] += 1


_SEEN: dict[int, Any] = {}


@runner
def caches_by_pointer(problem: Problem, tensors: Tensors) -> None:
    """Computes once per output buffer and replays the result ever after."""
    target = output(problem, tensors)
    if target.ctypes.data not in _SEEN:
        compute(problem, tensors)
        _SEEN[target.ctypes.data] = target.copy()
    target[...] = _SEEN[target.ctypes.data]


@runner
def skips_later_work(problem: Problem, tensors: Tensors) -> None:
    """Does the two checked runs and the warm-up, then nothing."""
    if next(_CALLS) < 6:
        compute(problem, tensors)


def _reply_pipe() -> int:
    return int(sys.argv[2])


def _forge(kind: str, body: object) -> None:
    os.write(_reply_pipe(), json.dumps({"kind": kind, "body": body}).encode() + b"\n")


@runner
def forges_an_answer(problem: Problem, tensors: Tensors) -> None:
    """Claims to have run, and leaves."""
    _forge("Ran", {"findings": []})
    os._exit(0)


@runner
def forges_a_verdict(problem: Problem, tensors: Tensors) -> None:
    _forge("Verdict", {"status": "passed"})
    os._exit(0)


@runner
def babbles(problem: Problem, tensors: Tensors) -> None:
    os.write(_reply_pipe(), b"\x80\x04pickle?\n")
    time.sleep(60)


@runner
def closes_the_pipe(problem: Problem, tensors: Tensors) -> None:
    os.close(_reply_pipe())
    time.sleep(60)


@register("unbuildable")
def unbuildable(candidate: Candidate, problem: Problem) -> Any:
    raise BuildError(f"{candidate.path}:3: unknown name `{candidate.entry}`")


@register("hangs_in_build")
def hangs_in_build(candidate: Candidate, problem: Problem) -> Any:
    time.sleep(60)


@register("needs_even_m")
def needs_even_m(candidate: Candidate, problem: Problem) -> Any:
    if problem.dims["M"] % 2:
        raise Refused("M % 2 == 0 does not hold")

    class Even:
        def run(self, tensors: Tensors) -> None:
            compute(problem, tensors)

    return Even()
