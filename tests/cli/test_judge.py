"""`cake judge | bench`: requests, verdicts, statuses. Times come from a made-up verdict."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from cake.cli import judging
from cake.judge import Evaluation, JudgeUnavailable, Summary, TimingResult, Verdict
from cake.runtime import driver
from cake.workloads import Case

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

SOFTMAX = """\
@cake.schedule(target="sm_80")
def softmax(x: Tensor[T, "M", "N"], y: Tensor[T, "M", "N"], *, T: meta(bf16, f16, f32) = bf16):
    (row,) = grid(M)
    rows = role(warps=1)
    with rows:
        top = -inf
        for i in range(lane(), N, 32):
            top = max(top, cast(load(x[row, i]), f32))
        top = warp_max(top)
        total = 0.0
        for i in range(lane(), N, 32):
            total = total + exp2((cast(load(x[row, i]), f32) - top) * 1.4426950408889634)
        total = warp_sum(total)
        for i in range(lane(), N, 32):
            e = exp2((cast(load(x[row, i]), f32) - top) * 1.4426950408889634)
            store(y[row, i], cast(e / total, T))
"""

TIMED = TimingResult(
    case=Case(shape={"M": 4, "N": 8}, dtype="bf16"),
    clock="events",
    candidate=Summary(median=0.5, q1=0.4, q3=0.6, count=60),
    baseline_name="torch",
    baseline=Summary(median=1.0, q1=0.9, q3=1.1, count=60),
    speedup=2.0,
    status="passed",
    detail="",
)


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    path = tmp_path / "softmax.py"
    path.write_text(SOFTMAX)
    return path


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Evaluation]:
    """Evaluations that reach the judge, which passes them all with made-up times."""
    seen: list[Evaluation] = []

    def answer(evaluation: Evaluation) -> Verdict:
        seen.append(evaluation)
        return Verdict(
            status="passed",
            workload=evaluation.workload,
            candidate_hash=evaluation.candidate.digest(),
            runner=evaluation.candidate.runner,
            device=evaluation.device,
            detail="",
            results=(),
            timings=(TIMED,),
            environment={},
            output="",
            seconds=1.0,
        )

    monkeypatch.setattr(judging, "pass_verdict", answer)
    monkeypatch.setattr(driver, "driver", lambda: None)
    return seen


def test_a_right_schedule_passes(cake: Cake, softmax: Path) -> None:
    result = cake(
        "judge", softmax, "--workload", "softmax", "--shape", "M=2,N=40", "--family", "normal"
    )
    assert result.exit_code == 0
    assert "M=2,N=40  bf16   normal  " in result.stdout
    assert result.stdout.endswith("softmax: passed on cpu\n")


def test_a_wrong_schedule_is_rejected_and_can_be_repeated(
    document: Document, softmax: Path
) -> None:
    softmax.write_text(SOFTMAX.replace("e / total", "e / (total + 1.0)"))
    options = ("--workload", "softmax", "--shape", "M=2,N=40", "--family", "normal")
    found = document("judge", softmax, *options, "--seed", 7)
    assert found["status"] == "rejected"
    assert found["verdict"]["status"] == "incorrect"
    finding = found["diagnostics"][0]
    assert finding["code"] == "CK958"
    assert "softmax M=2,N=40 bf16, family normal, seed 7" in finding["message"]
    assert (
        found["verdict"]["results"]
        == (document("judge", softmax, *options, "--seed", 7)["verdict"]["results"])
    )


def test_a_schedule_that_does_not_fit_is_refused(document: Document, good: Path) -> None:
    found = document("judge", good, "--workload", "softmax", "--family", "normal")
    assert found["verdict"]["status"] == "refused"
    assert found["status"] == "rejected"
    assert "`cake evolve softmax` tries all" in found["diagnostics"][0]["helps"][-1]


def test_problems_outside_the_domain_leave_the_answer_incomplete(
    document: Document, tmp_path: Path
) -> None:
    even = tmp_path / "even.py"
    even.write_text(SOFTMAX.replace("    (row,)", "    require(N % 2 == 0)\n    (row,)"))
    options = ("--workload", "softmax", "--family", "normal", "--dtype", "bf16")
    shapes = ("--shape", "M=2,N=6", "--shape", "M=2,N=5")
    found = document("judge", even, *options, *shapes)
    assert found["status"] == "incomplete"
    assert [(d["code"], d["severity"]) for d in found["diagnostics"]] == [("CK959", "note")]


def test_errors_of_the_language_come_before_the_judge(
    cake: Cake, bad: Path, asked: list[Evaluation]
) -> None:
    result = cake("judge", bad, "--workload", "softmax")
    assert result.exit_code == 1
    assert "error[CK101]" in result.stderr
    assert asked == []


def test_bench_shows_medians_quartiles_and_speed_up(
    cake: Cake, softmax: Path, asked: list[Evaluation]
) -> None:
    options = ("--workload", "softmax", "--set", "small", "--meta", "T=f16", "--dtype", "f16")
    result = cake("bench", softmax, *options)
    assert result.exit_code == 0
    assert "M=4,N=8  bf16   0.5000 (0.4000 to 0.6000)  torch" in result.stdout
    assert " 2.000 " in result.stdout.splitlines()[1]
    assert "kept as verdict 1 in " in result.stdout
    (evaluation,) = asked
    assert evaluation.timing is not None
    assert evaluation.timing.baseline == "torch"
    assert evaluation.device == "cuda"
    assert evaluation.candidate.meta == {"T": "f16"}
    assert {case.dtype for case in evaluation.cases} == {"f16"}


def test_a_target_is_written_into_the_candidate(
    cake: Cake, softmax: Path, asked: list[Evaluation]
) -> None:
    options = (
        "--workload",
        "softmax",
        "--target",
        "sm_90a",
        "--baseline",
        "none",
        "--set",
        "small",
    )
    assert cake("bench", softmax, *options).exit_code == 0
    assert '@cake.schedule(target="sm_90a")' in asked[0].candidate.text
    assert asked[0].timing is not None
    assert asked[0].timing.baseline is None
    assert len(asked[0].cases) > 3


def test_a_machine_without_a_gpu_is_told_so(
    document: Document, softmax: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver, "_LIBRARY", "libnothing.so.1")
    driver.libcuda.cache_clear()
    driver.driver.cache_clear()
    for command in (("bench",), ("judge", "--device", "cuda")):
        found = document(*command, softmax, "--workload", "softmax")
        assert found["status"] == "environment"
        assert found["diagnostics"][0]["code"] == "CK716"


def test_a_judge_that_cannot_start_is_the_machines_fault(
    document: Document, softmax: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(evaluation: Evaluation) -> Verdict:
        raise JudgeUnavailable("no process")

    monkeypatch.setattr(judging, "pass_verdict", refuse)
    found = document("judge", softmax, "--workload", "softmax")
    assert found["status"] == "environment"
    assert found["diagnostics"][0]["code"] == "CK957"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "--workload"),
        (["--workload", "softmax", "--shape", "M=2,N=4", "--set", "small"], "do not go together"),
        (["--workload", "softmax", "--dtype", "f64"], ", not of f64"),
        (["--workload", "softmax", "--shape", "M=2,N=4", "--dtype", "f64"], "`f64` is not one of"),
        (["--workload", "softmax", "--set", "huge"], "'huge' is not one of"),
        (["--workload", "softmax", "--baseline", "magic"], "softmax has torch, not magic"),
        (["--workload", "softmax", "--samples", "0"], "0 is not in the range"),
    ],
)
def test_requests_that_make_no_sense_are_wrong_use(
    cake: Cake, softmax: Path, asked: list[Evaluation], options: list[str], problem: str
) -> None:
    result = cake("bench", softmax, *options)
    assert result.exit_code == 2
    assert problem in result.stderr.replace("\n", " ")
    assert asked == []
