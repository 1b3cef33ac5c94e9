"""Schedules in Cake IR before the judge: simulated on the CPU, launched on a GPU."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from cake.judge import Candidate, Evaluation, TimingPlan, Verdict, judge
from cake.judge.device_cuda import CudaArray
from cake.judge.ir_runner import PLUGIN, RUNNER
from cake.kernels import schedules, with_meta
from cake.runtime.arrays import adapter_of
from cake.workloads import Case, get
from tests.kernels.samples import SCALE

CASE = Case(shape={"M": 5, "D": 72}, dtype="bf16")


def verdict(text: str = SCALE, *, meta=None, case: Case = CASE, **options) -> Verdict:
    candidate = Candidate(runner=RUNNER, entry="sample", meta=meta or {}, text=text)
    options.setdefault("families", ("normal", "exact_integers"))
    return judge(
        Evaluation(
            workload="rmsnorm", candidate=candidate, cases=(case,), plugins=(PLUGIN,), **options
        )
    )


def test_a_right_schedule_passes_with_its_temporary_and_its_guard_bound() -> None:
    found = verdict()
    assert (found.status, found.detail) == ("passed", "")


def test_a_wrong_schedule_is_incorrect() -> None:
    found = verdict(SCALE.replace("+ eps)", "+ eps + 1.0)"))
    assert found.status == "incorrect"


def test_a_finding_of_the_simulator_ends_the_case() -> None:
    found = verdict(SCALE.replace("store(sums[row]", "store(sums[row + M]"))
    assert found.status == "crashed"
    assert "CK5" in found.detail


def test_meta_parameters_of_the_candidate_are_kept() -> None:
    assert verdict(meta={"WARPS": 4, "DP": 128}).status == "passed"
    refused = verdict(meta={"DP": 64})
    assert refused.status == "refused"
    assert "require(D <= 64)" in refused.detail


def test_a_text_with_errors_fails_to_build_with_its_diagnostics() -> None:
    found = verdict(SCALE.replace("rsqrt", "square_root"))
    assert found.status == "build_failed"
    assert "CK101" in found.detail


def test_rows_of_a_padded_array_lie_farther_apart() -> None:
    memory: Any = SimpleNamespace(pointer=256)
    norms = CudaArray(memory, 0, (2, 33), np.dtype(np.float32), stored=(2, 36))
    view = adapter_of(norms).view(norms)
    assert (view.pointer, view.shape, view.strides) == (256, (2, 33), (36, 1))


@pytest.mark.gpu
@pytest.mark.parametrize("workload", ["rmsnorm", "softmax", "gemm", "kmeans_assign"])
def test_shipped_schedules_pass_on_the_gpu(workload: str) -> None:
    contract = get(workload)
    small = next(c for c in contract.shapes["small"] if c.dtype == "bf16")
    for file in schedules(workload, "sm_90a")[:1]:
        text = with_meta(file.text, {}, file.target)
        candidate = Candidate(runner=RUNNER, entry=file.name, text=text)
        found = judge(
            Evaluation(
                workload=workload,
                candidate=candidate,
                cases=(small,),
                plugins=(PLUGIN,),
                device="cuda",
                timing=TimingPlan(samples=5),
            )
        )
        assert found.status == "passed", found.detail
