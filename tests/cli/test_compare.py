"""`cake compare | replay | selftest`, and candidates that are no schedules."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import Result

from cake.cli.times import answer
from cake.judge import (
    Candidate,
    Columns,
    Evaluation,
    Summary,
    TimingResult,
    Verdict,
    judge,
)
from cake.judge.python_runner import PLUGIN, RUNNER
from cake.judge.selftest.sources import SOFTMAX
from cake.judge.statistics import Interval, block_ratios, interval
from cake.judge.store import Store, default_folder
from cake.workloads import Case

Cake = Callable[..., Result]
Document = Callable[..., dict[str, Any]]

CASE = Case(shape={"M": 4, "N": 64}, dtype="f32")
SHAPE = ("--workload", "softmax", "--shape", "M=4,N=64", "--dtype", "f32")
AS_PYTHON = ("--runner", "python", *SHAPE)


@pytest.fixture
def softmax(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(SOFTMAX)
    return path


@pytest.fixture
def asked() -> Evaluation:
    candidate = Candidate(runner=RUNNER, entry="mine", text=SOFTMAX)
    return Evaluation(
        workload="softmax",
        candidate=candidate,
        cases=(CASE,),
        families=("normal",),
        plugins=(PLUGIN,),
    )


def timed(speedup: float, *, clock: str = "CUPTI span", seed: int = 0) -> TimingResult:
    """Times of a candidate that is ``speedup`` as fast as its baseline."""
    rng = np.random.default_rng(seed)
    base, mine = (tuple(m * np.exp(0.01 * rng.standard_normal(40))) for m in (1.0, 1 / speedup))
    return TimingResult(
        case=CASE,
        clock=clock,
        candidate=Summary.of(mine),
        baseline_name="torch",
        baseline=Summary.of(base),
        speedup=speedup,
        status="passed",
        detail="",
        ratio=interval([block_ratios(base, mine)]),
        columns=Columns(warm_ms=0.5, host_us=3.25),
        floor_ms=0.25,
        candidate_ms=mine,
        baseline_ms=base,
        process_samples=(20, 20),
    )


def kept(asked: Evaluation, *timings: TimingResult) -> int:
    verdict = Verdict(
        status="passed",
        workload="softmax",
        candidate_hash=asked.candidate.digest(),
        runner=RUNNER,
        device="cuda",
        detail="",
        results=(),
        timings=timings,
        environment={},
        output="",
        seconds=1.0,
    )
    with Store(default_folder()) as store:
        return store.add(asked, verdict)


class TestStored:
    def test_the_faster_of_two_is_named_with_its_interval(
        self, cake: Cake, asked: Evaluation
    ) -> None:
        fast, slow = kept(asked, timed(1.5)), kept(asked, timed(1.2, seed=1))
        result = cake("compare", fast, slow)
        assert result.exit_code == 0
        assert "mine (1) is faster than mine (2): 1.2" in result.stdout
        assert "mine (2) is slower than mine (1): 0.8" in cake("compare", slow, fast).stdout

    def test_equals_are_not_told_apart(self, document: Document, asked: Evaluation) -> None:
        numbers = [kept(asked, timed(1.3, seed=seed)) for seed in (1, 2)]
        (found,) = document("compare", *numbers)["ratios"]
        assert found["low"] < 1 < found["high"]

    def test_other_clocks_do_not_compare(self, cake: Cake, asked: Evaluation) -> None:
        numbers = kept(asked, timed(1.5)), kept(asked, timed(1.2, clock="CUDA events"))
        result = cake("compare", *numbers)
        assert result.exit_code == 2
        assert "same baseline by the same clock" in result.stderr

    def test_a_verdict_that_is_not_there(self, document: Document) -> None:
        found = document("compare", 1, 2)
        assert found["status"] == "environment"
        assert found["diagnostics"][0]["code"] == "CK962"


class TestFiles:
    def test_a_slower_file_is_slower(self, cake: Cake, softmax: Path, tmp_path: Path) -> None:
        slow = tmp_path / "slow.py"
        slow.write_text("from time import sleep\n" + SOFTMAX + "    sleep(0.01)\n")
        result = cake("compare", slow, softmax, *AS_PYTHON, "--device", "cpu", "--samples", 10)
        assert result.exit_code == 0, result.stdout
        assert "slow is slower than mine" in result.stdout
        assert "kept as verdict 1" in result.stdout

    def test_a_wrong_file_is_not_timed(self, document: Document, softmax: Path) -> None:
        wrong = softmax.with_name("wrong.py")
        wrong.write_text("def run(x, y):\n    y[...] = 0\n")
        found = document("compare", softmax, wrong, *AS_PYTHON, "--device", "cpu")
        assert found["status"] == "rejected"
        assert found["verdict"]["timings"] == []

    @pytest.mark.parametrize(
        ("arguments", "message"),
        [
            (("1", "mine.py"), "two stored verdicts or two files"),
            (("a.py", "b.py"), "files are compared on a --workload"),
        ],
    )
    def test_wrong_use(self, cake: Cake, arguments: tuple[str, ...], message: str) -> None:
        result = cake("compare", *arguments)
        assert result.exit_code == 2
        assert message in result.stderr


class TestReplay:
    def test_what_was_kept_comes_out_again(self, cake: Cake, softmax: Path) -> None:
        judged = cake("judge", softmax, *AS_PYTHON, "--family", "normal", "--keep")
        assert "kept as verdict 1" in judged.stdout
        softmax.unlink()
        again = cake("replay", 1)
        assert again.exit_code == 0
        assert again.stdout == "verdict 1, softmax: passed; the same verdict again\n"
        assert "mine       cpu     passed" in cake("replay").stdout

    def test_another_verdict_is_a_finding(self, document: Document, asked: Evaluation) -> None:
        verdict = judge(asked)
        wrong = replace(asked.candidate, text="def run(y):\n    y[...] = 0\n")
        with Store(default_folder()) as store:
            store.add(replace(asked, candidate=wrong), verdict)
        found = document("replay", 1)
        assert found["status"] == "rejected"
        assert [d["code"] for d in found["diagnostics"]] == ["CK961"]


class TestCandidates:
    def test_bench_times_a_module_without_a_gpu(self, document: Document, softmax: Path) -> None:
        options = ("--device", "cpu", "--baseline", "none", "--samples", 3, "--processes", 1)
        found = document("bench", softmax, *AS_PYTHON, *options)
        assert found["status"] == "accepted"
        assert len(found["verdict"]["timings"][0]["candidate_ms"]) == 3

    def test_a_cuda_source_needs_a_gpu(self, cake: Cake, tmp_path: Path) -> None:
        source = tmp_path / "mine.cu"
        source.write_text("// no manifest")
        result = cake("judge", source, *SHAPE)
        assert result.exit_code == 2
        assert "--device cuda" in result.stderr

    def test_a_manifest_beside_a_source_becomes_its_first_comment(
        self, tmp_path: Path, cake: Cake, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from cake.cli.judging import candidate

        (tmp_path / "mine.cu").write_text("void f();\n")
        (tmp_path / "mine.json").write_text(json.dumps({"entry": "f"}, indent=2))
        made = candidate(str(tmp_path / "mine.cu"), None, {}, None)
        assert (made.runner, made.entry) == ("cuda", "mine")
        assert made.text == '/* cake { "entry": "f" } */\n#line 1\nvoid f();\n'

    def test_meta_is_for_schedules(self, cake: Cake, softmax: Path) -> None:
        result = cake("judge", softmax, *AS_PYTHON, "--meta", "W=1")
        assert result.exit_code == 2
        assert "schedules in Cake IR" in result.stderr


class TestSelftest:
    def test_named_classes_are_run_and_counted(self, cake: Cake) -> None:
        result = cake("selftest", "impossible-time", "side-stream", "--jobs", 2)
        assert result.exit_code == 0
        assert result.stdout.endswith("selftest: 5 of 5 twins judged rightly\n")

    def test_an_unknown_class_is_wrong_use(self, cake: Cake) -> None:
        result = cake("selftest", "luck")
        assert result.exit_code == 2
        assert "there are altered-reference, " in result.stderr

    def test_a_class_for_a_gpu_says_so(self, cake: Cake) -> None:
        result = cake("selftest", "gpu-faults")
        assert result.exit_code == 2
        assert "need a GPU: --device cuda" in result.stderr


def test_an_answer_says_faster_slower_or_even() -> None:
    wide = Interval(ratio=1.05, low=0.99, high=1.1)
    assert answer(wide, 0.0, "a", "b").startswith("no difference between a and b is certain: 1.050")
    clear = Interval(ratio=1.05, low=1.02, high=1.1)
    assert answer(clear, 0.01, "a", "b").startswith("a is faster than b: 1.050 times as fast (99%")
    assert answer(clear, 0.03, "a", "b").startswith("no difference")
    assert answer(None, 0.0, "a", "b") == "too few samples to compare a and b"


class TestWorkload:
    def test_all_are_listed(self, document: Document) -> None:
        listed = {w["name"] for w in document("workload")["workloads"]}
        assert {"gemm", "knn_build", "softmax"} <= listed

    def test_a_new_one_is_made_once(self, cake: Cake, tmp_path: Path) -> None:
        first = cake("workload", "new", "mine", "--into", tmp_path, "--title", "My own")
        assert first.exit_code == 0
        assert "__init__.py, contract.py, inputs.py, reference.py, shapes.json" in first.stdout
        assert 'title="My own"' in (tmp_path / "mine" / "contract.py").read_text()
        again = cake("workload", "new", "mine", "--into", tmp_path)
        assert again.exit_code == 2
        assert "is there already" in again.stderr
