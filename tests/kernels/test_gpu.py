"""Every shipped schedule on the GPU: against the float64 reference, and against the simulator.

Run with ``pytest -m gpu tests/kernels/test_gpu.py`` on a device of compute capability 9.0, with
torch installed. Schedules for a base architecture are built for the device.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

from cake.codegen.compile import compile_program
from cake.ir.program import Program
from cake.kernels import poisoned, scalars, temporaries
from cake.lang.printer import digest
from cake.runtime.driver import device
from cake.runtime.kernel import LoadedKernel, architecture
from cake.targets import get as get_target
from cake.workloads import get
from tests.kernels.cases import Trial, edge_trials, family_trials

pytestmark = pytest.mark.gpu

Arrays = dict[str, Any]
Launch = Callable[[Trial, tuple[Program, ...], Arrays], Arrays]

TRIALS = [*family_trials(), *edge_trials()]
IDS = [t.label for t in TRIALS]

EXACT: Mapping[str, frozenset[str]] = {
    "gemm": frozenset({"exact_integers", "identity", "zero"}),
    "kmeans_assign": frozenset({"exact_integers", "integer_ties", "digits", "identity", "zero"}),
    "kmeans_update": frozenset({"exact_integers", "digits", "zero"}),
}
"""Families on which every sum is exact in f32, in any order: simulator and GPU agree bit by bit."""
ALWAYS_EXACT = frozenset({"counts"})
"""Outputs that are exact on every family."""
CHOICES = frozenset({"ids"})
"""Outputs that may differ where two scores are within rounding; the reference judges those."""
ULPS = 2
"""Elsewhere they agree within this many units in the last place of the greatest element of the
row: the tensor core rounds its sums in an order of its own, and powers and roots approximate."""
STEP = 8
"""The least of K that a product adds at once; results in f32 show the rounding of every step."""
CANCELLING = frozenset({"cancellation"})
"""Families whose results are far smaller than the terms that make them up."""


@pytest.fixture(scope="module")
def launch() -> Launch:
    """Runs a trial's programs on torch tensors; every program is built once."""
    torch = pytest.importorskip("torch")
    from cake.judge.device_torch import torch_dtype

    kernels: dict[str, LoadedKernel] = {}

    def kernel(program: Program) -> LoadedKernel:
        key = digest(program)
        if key not in kernels:
            arch = architecture(program.target, device(0))
            compiled = compile_program(program, arch=arch)
            kernels[key] = LoadedKernel(compiled.build.cubin, compiled.abi)
        return kernels[key]

    def on_device(array: Any) -> Any:
        if array.size == 0:
            return torch.empty(array.shape, dtype=torch_dtype(array.dtype), device="cuda")
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        tensor = torch.from_numpy(raw.copy()).cuda()
        return tensor.view(torch_dtype(array.dtype)).reshape(array.shape)

    def on_host(tensor: Any, like: Any) -> Any:
        if like.size == 0:
            return np.empty_like(like)
        raw = tensor.reshape(-1).view(torch.uint8).cpu().numpy()
        return raw.view(like.dtype).reshape(like.shape)

    def run(trial: Trial, programs: tuple[Program, ...], inputs: Arrays) -> Arrays:
        instance, outputs = trial.problem(), trial.garbage()
        tensors = {n: on_device(a) for n, a in {**inputs, **outputs}.items()}
        for t in temporaries(programs, instance):
            part = tuple(slice(extent) for extent in t.shape)
            tensors[t.name] = on_device(poisoned(t.stored, t.dtype))[part]
        for program in programs:
            mine = {t.name: tensors[t.name] for t in program.tensors}
            kernel(program).launch({**mine, **scalars(program, instance)})
        torch.cuda.synchronize()
        return {name: on_host(tensors[name], array) for name, array in outputs.items()}

    return run


def runs_here(target: str) -> bool:
    """Code for a plain architecture runs on later ones, code for one with a suffix on no other."""
    here, wanted = device(0).capability, get_target(target).capability
    return here == wanted if target[-1].isalpha() else here >= wanted


@pytest.mark.parametrize("trial", TRIALS, ids=IDS)
def test_the_gpu_agrees_with_the_reference_and_the_simulator(trial: Trial, launch: Launch) -> None:
    if not runs_here(str(trial.file.target)):
        pytest.skip(f"the GPU does not run code for {trial.file.target}")
    inputs, programs = trial.inputs(), trial.programs()
    found = launch(trial, programs, inputs)
    result = trial.judged(inputs, found)
    assert result.ok, result.detail
    if get(trial.workload).determinism == "bitwise":
        again = launch(trial, programs, inputs)
        assert {n: a.tobytes() for n, a in again.items()} == {
            n: a.tobytes() for n, a in found.items()
        }
    expected, findings = trial.simulate(inputs, programs)
    assert not findings
    for spec in get(trial.workload).outputs:
        compare_with_simulator(trial, spec.name, found[spec.name], expected[spec.name])


def compare_with_simulator(trial: Trial, name: str, found: Any, expected: Any) -> None:
    """Equal bits where every operation is exact, else the stated distance."""
    if found.size == 0:
        return
    if name in ALWAYS_EXACT or trial.family in EXACT.get(trial.workload, ()):
        assert same_bits(found, expected), f"{name} differs from the simulator"
        return
    if name in CHOICES or trial.family in CANCELLING:
        return
    rows = found.reshape(-1, found.shape[-1]).astype(np.float64)
    wanted = expected.reshape(rows.shape).astype(np.float64)
    finite = np.isfinite(wanted)
    np.testing.assert_array_equal(rows[~finite], wanted[~finite])
    peak = np.max(np.abs(wanted), axis=1, initial=0.0, where=finite)
    unit = np.abs(np.spacing(peak.astype(expected.dtype))).astype(np.float64)
    apart = np.subtract(rows, wanted, out=np.zeros_like(rows), where=finite)
    far = np.abs(apart) / unit[:, None]
    steps = -(-trial.shape.get("K", 0) // STEP) if expected.dtype == np.float32 else 0
    assert far.max() <= ULPS + steps, f"{name} is {far.max():.3g} units from the simulator's"


def same_bits(found: Any, expected: Any) -> bool:
    """Equal bits; any NaN for a NaN and any zero for a zero of floats."""
    if expected.dtype.kind == "i":
        return bool(np.array_equal(found, expected))
    left, right = found.astype(np.float64), expected.astype(np.float64)
    return bool(np.array_equal(left, right, equal_nan=True))
