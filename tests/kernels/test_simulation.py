"""All kernels of a schedule on the CPU."""

import numpy as np

from cake.kernels import bind, poisoned, scalars, simulate_schedule
from cake.workloads import compare, generate, get, problem
from tests.kernels.samples import SCALE, file

CONTRACT = get("rmsnorm")
SHAPE = {"M": 5, "D": 72, "eps": 1e-5}
PROBLEM = problem(CONTRACT, SHAPE, "bf16")


def run(text: str):
    inputs = generate(CONTRACT, SHAPE, "bf16", "normal", 1)
    y = poisoned(PROBLEM.shape_of("y"), PROBLEM.dtype_of("y"))
    programs = bind(file(text), PROBLEM).programs
    findings = simulate_schedule(programs, PROBLEM, {**inputs, "y": y})
    return findings, compare(CONTRACT, SHAPE, "bf16", inputs, {"y": y})


def test_launches_share_temporaries_and_scalars_come_from_the_problem() -> None:
    findings, comparison = run(SCALE)
    assert (findings, comparison.ok) == ((), True)


def test_what_no_kernel_has_written_stays_poison_and_is_a_finding() -> None:
    findings, comparison = run(SCALE.replace("if row < M:", "if row + 1 < M:"))
    assert [d.message for d in findings] == [
        "72 of 360 elements of y are never written, the first at (4, 0)"
    ]
    assert comparison.tensors[0].wrong == 72


def test_reading_a_temporary_before_it_is_written_is_a_finding() -> None:
    early = SCALE.replace("total = 0.0", "total = load(sums[row])")
    findings, _ = run(early)
    assert len(findings) == 1
    assert findings[0].code.startswith("CK5")


def test_scalars_of_a_program() -> None:
    squares, scale = bind(file(SCALE), PROBLEM).programs
    assert (scalars(squares, PROBLEM), scalars(scale, PROBLEM)) == ({}, {"eps": 1e-5})


def test_poison_is_nan_or_minus_one() -> None:
    assert np.isnan(poisoned((3,), np.float32)).all()
    assert (poisoned((2, 2), np.int32) == -1).all()
