import os
import re
import time

import pytest

from cake.judge import (
    Candidate,
    Evaluation,
    JudgeUnavailable,
    Limits,
    TimingPlan,
    Verdict,
    judge,
)
from cake.workloads import Case, ContractError, get, names

SOFTMAX = Case(shape={"M": 4, "N": 64}, dtype="f32")
ODD = Case(shape={"M": 3, "N": 64}, dtype="f32")


def evaluation(runner, **changes) -> Evaluation:
    settings = {
        "workload": "softmax",
        "candidate": Candidate(runner=runner, entry="softmax", path="softmax.py"),
        "cases": (SOFTMAX,),
        "families": ("normal",),
        "plugins": ("tests.judge.fakes",),
        **changes,
    }
    return Evaluation(**settings)


def judged(runner, **changes) -> Verdict:
    """The verdict on a fake runner; on the way, that it survives JSON."""
    verdict = judge(evaluation(runner, **changes))
    text = verdict.to_json()
    assert Verdict.from_json(text).to_json() == text
    return verdict


class TestHonest:
    def test_passes_on_every_family(self):
        verdict = judged("compute", families=())
        assert verdict.status == "passed"
        assert verdict.detail == ""
        declared = [family.name for family in get("softmax").families]
        assert [result.family for result in verdict.results] == declared
        assert all(result.comparison.ok for result in verdict.results)
        assert verdict.environment["python"]

    @pytest.mark.parametrize("name", sorted({*names()} - {"softmax"}))
    def test_passes_on_every_workload(self, name):
        case = get(name).shapes["small"][0]
        families = ("normal", "nan", "constant")
        verdict = judged("compute", workload=name, cases=(case,), families=families)
        assert verdict.status == "passed", verdict.detail

    def test_a_given_seed_is_used_and_otherwise_one_is_drawn_for_each_case(self):
        cases = (SOFTMAX, ODD)
        assert [r.seed for r in judged("compute", cases=cases, seed=5).results] == [5, 5]
        assert len({r.seed for r in judged("compute", cases=cases).results}) == 2


@pytest.mark.parametrize("cheat", ["zeros", "constant", "identity"])
def test_candidates_that_do_no_work_fail(cheat):
    """The comparison's own tests do the same for every workload, without a child process."""
    verdict = judged(cheat)
    assert verdict.status == "incorrect"


def kinds(verdict):
    return [finding.kind for result in verdict.results for finding in result.findings]


class TestIncorrect:
    def test_a_wrong_element_is_named(self):
        verdict = judged("wrong")
        assert verdict.status == "incorrect"
        assert "the worst is at [0, 3]" in verdict.detail
        assert "got 7" in verdict.detail

    def test_an_element_that_is_never_written(self):
        verdict = judged("partial")
        assert (verdict.status, kinds(verdict)) == ("incorrect", ["unwritten"])
        assert "1 of 256 elements, the first at [3, 63], were never written" in verdict.detail

    def test_a_modified_input(self):
        verdict = judged("writes_input")
        assert (verdict.status, kinds(verdict)) == ("incorrect", ["input-modified"])

    def test_a_write_behind_a_tensor(self):
        verdict = judged("writes_behind")
        assert verdict.status == "incorrect"
        assert set(kinds(verdict)) == {"guard-overwritten"}
        assert (
            "y: 4 bytes behind the tensor were overwritten, the nearest 6 bytes" in verdict.detail
        )

    def test_a_write_before_a_tensor(self):
        verdict = judged("writes_before")
        assert set(kinds(verdict)) == {"guard-overwritten"}
        assert "2 bytes before the tensor were overwritten, the nearest 0 bytes" in verdict.detail

    def test_a_read_behind_a_tensor(self):
        verdict = judged("reads_behind")
        assert verdict.status == "incorrect"
        assert "got nan" in verdict.detail

    def test_results_that_differ_from_run_to_run(self):
        verdict = judged("varies")
        assert (verdict.status, kinds(verdict)) == ("incorrect", ["nondeterministic"])
        assert verdict.results[0].comparison.ok


class TestCrash:
    def test_an_exception_with_its_trace(self):
        verdict = judged("raises")
        assert verdict.status == "crashed"
        assert "RuntimeError: CUDA_ERROR_ILLEGAL_ADDRESS" in verdict.detail
        assert "fakes.py" in verdict.detail

    @pytest.mark.parametrize("runner", ["leaves", "exits", "leaves_a_daemon"])
    def test_exit_code_zero_is_no_verdict(self, runner):
        start = time.monotonic()
        verdict = judged(runner, cases=(SOFTMAX, ODD))
        assert verdict.status == "crashed"
        assert "ended with exit code 0 before its answer" in verdict.detail
        assert [result.case for result in verdict.results] == [SOFTMAX]
        assert time.monotonic() - start < 20

    def test_a_flood_of_output(self):
        verdict = judged("floods")
        assert verdict.status == "crashed"
        assert "printed more than 1048576 bytes" in verdict.detail
        assert len(verdict.output) <= 1 << 14

    @pytest.mark.parametrize(
        ("runner", "detail"),
        [
            ("forges_an_answer", "the outputs are not usable"),
            ("forges_a_verdict", "unknown kind 'Verdict'"),
            ("babbles", "no message"),
            ("closes_the_pipe", "closed its pipe"),
        ],
    )
    def test_lies_on_the_pipe(self, runner, detail):
        verdict = judged(runner)
        assert verdict.status == "crashed"
        assert detail in verdict.detail

    def test_a_signal_ends_the_evaluation_and_earlier_results_are_kept(self):
        verdict = judged("crashes_on_zero", families=("normal", "zero", "constant"))
        assert "ended by SIGABRT before its answer" in verdict.detail
        assert [result.status for result in verdict.results] == ["passed", "crashed"]
        assert verdict.status == "crashed"


class TestHang:
    def test_a_hang_is_ended_within_its_limit_and_two_seconds(self):
        verdict = judged("hangs", limits=Limits(run=0.5))
        assert verdict.status == "hang"
        assert "no answer within 0.5 s" in verdict.detail
        assert verdict.seconds < 0.5 + 2 + 5  # the last five for starting an interpreter

    def test_nothing_of_its_process_group_survives(self):
        verdict = judged("hangs_with_children", limits=Limits(run=1.0))
        assert verdict.status == "hang"
        pid = int(re.search(r"child (\d+)", verdict.output).group(1))
        deadline = time.monotonic() + 5
        while time.monotonic() < deadline and _alive(pid):
            time.sleep(0.05)
        assert not _alive(pid)

    def test_a_hang_in_the_build(self):
        verdict = judged("hangs_in_build", limits=Limits(build=0.3))
        assert verdict.status == "hang"
        assert verdict.results[0].family == ""


def _alive(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


class TestBuild:
    def test_a_build_error_is_shown_as_it_is(self):
        verdict = judged("unbuildable")
        assert verdict.status == "build_failed"
        assert verdict.detail == "softmax.py:3: unknown name `softmax`"

    def test_a_refused_case_does_not_end_the_others(self):
        verdict = judged("needs_even_m", cases=(ODD, SOFTMAX))
        assert [result.status for result in verdict.results] == ["refused", "passed"]
        assert verdict.status == "refused"
        assert verdict.detail == "M % 2 == 0 does not hold"


class TestTiming:
    PLAN = TimingPlan(warmup=2, samples=9, checked=9)

    def test_an_honest_candidate_is_timed_and_its_samples_are_checked(self):
        verdict = judged("compute", timing=self.PLAN)
        (timing,) = verdict.timings
        assert verdict.status == timing.status == "passed"
        assert timing.clock == "host clock"
        assert timing.candidate.count == 9
        assert 0 < timing.candidate.q1 <= timing.candidate.median <= timing.candidate.q3
        assert timing.baseline is None
        assert Verdict.from_json(verdict.to_json()) == verdict

    @pytest.mark.parametrize("runner", ["caches_by_pointer", "skips_later_work"])
    def test_stale_results_in_timed_samples_are_caught(self, runner):
        verdict = judged(runner, timing=self.PLAN)
        assert [result.status for result in verdict.results] == ["passed"]
        assert verdict.timings[0].status == verdict.status == "incorrect"
        assert verdict.detail.startswith("timed sample ")

    def test_an_incorrect_candidate_is_not_timed(self):
        assert judged("wrong", timing=self.PLAN).timings == ()

    def test_a_baseline_that_does_not_exist_is_said_and_not_replaced(self):
        plan = TimingPlan(baseline="cutlass", warmup=1, samples=2, checked=0)
        (timing,) = judged("compute", timing=plan).timings
        assert timing.baseline is None
        assert timing.speedup is None
        assert "softmax has no baseline `cutlass`; there are: torch" in timing.detail

    @pytest.mark.parametrize("change", [{"samples": 0}, {"warmup": 0}, {"contents": 1}])
    def test_a_plan_that_measures_nothing_is_refused(self, change):
        with pytest.raises(ValueError, match="samples are at least 1, contents at least 2"):
            TimingPlan(**change)


class TestWrongUse:
    def test_an_unknown_runner_is_not_the_candidates_fault(self):
        with pytest.raises(JudgeUnavailable, match="no runner is called `missing`"):
            judged("missing")

    def test_an_unknown_device(self):
        with pytest.raises(JudgeUnavailable, match="known are cpu and cuda"):
            judged("compute", device="tpu")

    def test_a_case_that_the_contract_does_not_admit(self):
        with pytest.raises(ContractError, match="lacks N"):
            judged("compute", cases=(Case(shape={"M": 1}, dtype="f32"),))

    def test_a_family_that_the_contract_does_not_have(self):
        with pytest.raises(ContractError, match="no input family `odd`"):
            judged("compute", families=("odd",))

    def test_no_cases(self):
        with pytest.raises(ValueError, match="no cases to judge"):
            evaluation("compute", cases=())


def test_no_file_descriptor_and_no_folder_is_left(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    judged("compute")  # starts the process that others are forked from
    before = len(os.listdir("/proc/self/fd"))
    judged("crashes_on_zero", families=("zero",))
    assert len(os.listdir("/proc/self/fd")) == before
    assert list(tmp_path.iterdir()) == []
