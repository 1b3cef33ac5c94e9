"""`cake evolve`: a real, small run; resuming it; requests that make no sense."""

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cake.cli import evolve, main
from cake.diag import CakeError, Diagnostic
from cake.evolve import Budget, EvolveConfig, EvolveResult

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]
Start = Callable[..., "subprocess.Popen[bytes]"]

SMALL = ("softmax", "--device", "cpu", "--shape", "M=8,N=256", "--workers", "1")


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run with one evaluation."""
    folder = tmp_path_factory.mktemp("evolve") / "run"
    options = ("--budget-evaluations", "1", "--out", str(folder), "--json")
    result = CliRunner().invoke(main, ["evolve", *SMALL, *options])
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    assert document["stopped"] == "evaluations"
    assert document["evaluations"] == 1
    return folder


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[EvolveConfig]:
    """Configurations that reach the search, which finds nothing."""
    seen: list[EvolveConfig] = []

    def answer(config: EvolveConfig, progress: object) -> EvolveResult:
        seen.append(config)
        return EvolveResult(
            folder=Path("run"),
            best=None,
            evaluations=0,
            funnel={"points": 3, "rejected": 3, "passed": 0},
            seconds=1.0,
            stopped="exhausted",
            files=(),
            message="nothing passed",
        )

    monkeypatch.setattr(evolve, "run", answer)
    monkeypatch.setattr(evolve, "_top", lambda folder: [])
    monkeypatch.setattr(evolve, "write_report", lambda folder: folder / "report.html")
    return seen


def test_a_run_leaves_the_best_schedule_and_says_where(cake: Cake, finished: Path) -> None:
    result = cake("evolve", "--resume", finished)
    assert result.exit_code == 0
    assert result.stdout.startswith("candidate  variant")
    assert f"wrote {finished}/best/schedule.py\n" in result.stdout
    assert f"wrote {finished}/report.html\n" in result.stdout
    assert (finished / "report.html").read_text("utf-8").lower().startswith("<!doctype html>")
    assert "the budget of 1 evaluations is used up" in result.stdout
    check = cake("check", finished / "best" / "schedule.py")
    assert check.exit_code in (0, 3), check.output


def test_a_larger_budget_lets_a_finished_run_go_on(document: Document, finished: Path) -> None:
    found = document("evolve", "--resume", finished, "--budget-evaluations", "2")
    assert found["evaluations"] == 2
    assert found["folder"] == str(finished)
    assert found["top"][0]["kind"] == "estimated"
    assert found["best"]["candidate"] == found["top"][0]["candidate"]


def test_options_reach_the_search(cake: Cake, good: Path, asked: list[EvolveConfig]) -> None:
    result = cake(
        "evolve",
        "gemm",
        *("--target", "sm_80", "--shape", "M=64,N=64,K=64", "--dtype", "f16"),
        *("--file", good, "--seed", 3, "--workers", 4, "--budget-seconds", 9),
    )
    assert result.exit_code == 1
    assert "candidates: 3 points, 3 rejected\n" in result.stdout
    (config,) = asked
    assert config.case is not None
    assert (dict(config.case.shape), config.case.dtype) == ({"M": 64, "N": 64, "K": 64}, "f16")
    assert config.budget == Budget(max_seconds=9)
    assert (config.target, config.files, config.seed, config.workers) == ("sm_80", (good,), 3, 4)


def test_without_a_shape_the_contract_decides(cake: Cake, asked: list[EvolveConfig]) -> None:
    cake("evolve", "gemm")
    assert asked[0].case is None
    assert asked[0].target == "sm_90a"


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ([], "name a workload ("),
        (["nope"], "'nope' is not one of"),
        (["gemm", "--target", "sm_42"], "'sm_42' is not one of"),
        (["gemm", "--budget-evaluations", "0"], "0 is not in the range"),
        (["gemm", "--budget-seconds", "0"], "0.0 is not in the range"),
        (["gemm", "--workers", "0"], "0 is not in the range"),
        (["gemm", "--baseline", "magic"], "gemm has torch, not magic"),
        (["gemm", "--shape", "M=1"], "the shape lacks N"),
        (["gemm", "--part", "Voodoo"], "--part: "),
        (["gemm", "--resume", "x"], "WORKLOAD does not go with --resume"),
        (["--seed", "1", "--resume", "x"], "--seed does not go with --resume"),
        (["--out", "y", "--resume", "x"], "--out does not go with --resume"),
    ],
)
def test_requests_that_make_no_sense_are_wrong_use(
    cake: Cake, options: list[str], problem: str
) -> None:
    result = cake("evolve", *options)
    assert result.exit_code == 2, result.output
    assert problem in result.stderr.replace("\n", " ")


def test_a_schedule_file_that_is_missing_is_named_before_the_run_starts(
    document: Document, asked: list[EvolveConfig], tmp_path: Path
) -> None:
    found = document("evolve", "gemm", "--file", tmp_path / "missing.py")
    assert found["status"] == "usage"
    assert found["diagnostics"][0]["code"] == "CK951"
    assert asked == []


def test_a_folder_that_is_no_run_is_wrong_use(document: Document, tmp_path: Path) -> None:
    found = document("evolve", "--resume", tmp_path)
    assert found["status"] == "usage"
    assert found["diagnostics"][0]["code"] == "CK823"


def test_a_run_is_never_overwritten(document: Document, finished: Path) -> None:
    found = document("evolve", *SMALL, "--out", finished)
    assert found["status"] == "usage"
    assert found["diagnostics"][0]["code"] == "CK821"


@pytest.mark.parametrize("code", ["CK824", "CK825"])
def test_what_the_machine_lacks_is_its_fault(
    document: Document, monkeypatch: pytest.MonkeyPatch, code: str
) -> None:
    def refuse(config: EvolveConfig, progress: object) -> EvolveResult:
        raise CakeError([Diagnostic.of(code, "no")])

    monkeypatch.setattr(evolve, "run", refuse)
    assert document("evolve", "gemm")["status"] == "environment"


@pytest.mark.parametrize(("sent", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_keeps_what_is_finished_and_says_how_to_go_on(
    start: Start, tmp_path: Path, sent: signal.Signals, status: int
) -> None:
    folder = tmp_path / "run"
    child = start("evolve", *SMALL, "--out", folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert child.stdout is not None
    _wait_for(folder / "run.sqlite", child)
    child.send_signal(sent)
    out, err = child.communicate(timeout=60)
    assert child.returncode == status, err.decode()
    assert f"cake evolve --resume {folder}" in out.decode()
    assert "Traceback" not in err.decode()


def _wait_for(path: Path, child: "subprocess.Popen[bytes]") -> None:
    """Until the run has begun."""
    for _ in range(600):
        if path.exists():
            time.sleep(1.0)
            return
        assert child.poll() is None
        time.sleep(0.05)
    pytest.fail("the run does not begin")
