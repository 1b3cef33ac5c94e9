"""Candidates in Python: what they may do, and what they are kept from."""

import dataclasses
import os
import time

import pytest

from cake.judge import Candidate, Evaluation, JudgeUnavailable, Limits, TimingPlan, judge, link
from cake.judge.child import Child
from cake.judge.laps import Track
from cake.judge.link import Link, confinement_of
from cake.judge.python_runner import PLUGIN, RUNNER
from cake.judge.sandbox import LIMITS, MIB, NAMESPACES, Confinement, confine
from cake.judge.selftest.sources import SOFTMAX
from cake.workloads import Case, generate, get, problem

CASE = Case(shape={"M": 4, "N": 64}, dtype="f32")


def evaluation(text: str, **changes) -> Evaluation:
    settings = {
        "workload": "softmax",
        "candidate": Candidate(runner=RUNNER, entry="mine", path="mine.py", text=text),
        "cases": (CASE,),
        "families": ("normal",),
        "plugins": (PLUGIN,),
        **changes,
    }
    return Evaluation(**settings)


def judged(text: str, **changes):
    return judge(evaluation(text, **changes))


def namespaces() -> bool:
    """Whether this machine grants them: tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        how = Confinement(
            scratch=os.getcwd(),
            memory_bytes=None,
            file_bytes=MIB,
            cpu_seconds=60,
            namespaces=True,
        )
        os._exit(0 if confine(how) == NAMESPACES else 1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


class TestRight:
    def test_a_module_with_run_passes_and_its_isolation_is_said(self):
        verdict = judged(SOFTMAX)
        assert (verdict.status, verdict.detail) == ("passed", "")
        assert verdict.environment["isolation"] in (NAMESPACES, LIMITS)

    def test_it_is_timed_beside_itself_by_the_parent(self):
        rival = Candidate(runner=RUNNER, entry="other", text=SOFTMAX)
        plan = TimingPlan(rival=rival, warmup=1, samples=20, processes=2)
        (timing,) = judged(SOFTMAX, timing=plan).timings
        assert timing.status == "passed"
        assert timing.clock.startswith("parent's clock")
        assert timing.baseline_name == "other"
        assert timing.process_samples == (20, 20)
        assert len(timing.candidate_ms) == len(timing.baseline_ms) == 40
        assert timing.ratio is not None
        assert timing.clocks.problem == "not on a GPU"

    def test_run_gets_the_numbers_that_it_names(self):
        text = "def run(y, M, N):\n    y[...] = 1 / N\n    assert M == 4\n"
        assert judged(text, families=("zero",)).status == "passed"

    def test_run_may_take_everything(self):
        text = (
            "def run(**all):\n    assert {*all} == {'x', 'y', 'M', 'N'}\n    all['y'][...] = 1 / 64"
        )
        assert judged(text, families=("zero",)).status == "passed"


class TestWrong:
    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("def run(x, y:\n", r"mine.py:1: SyntaxError"),
            ("raise ValueError('no GPU')\n", r"mine.py: ValueError: no GPU"),
            ("def go(x, y): ...\n", r"mine.py defines no function run"),
            ("def run(x, z): ...\n", r"run\(\) asks for z; it may ask for x, y, M, N"),
        ],
    )
    def test_a_module_that_cannot_be_built_says_why(self, text, message):
        verdict = judged(text)
        assert verdict.status == "build_failed"
        assert message.replace("\\", "") in verdict.detail

    def test_on_a_gpu_times_of_host_code_are_refused(self):
        from cake.judge.link import Stop
        from cake.judge.timed import Timing

        asked = evaluation(SOFTMAX, device="cuda", timing=TimingPlan())

        class Opened:
            candidate = asked.candidate

        with pytest.raises(Stop, match="only schedules and CUDA sources are timed"):
            Timing(asked, TimingPlan(), CASE, 1).result(Opened(), None)

    def test_a_hang_is_ended_within_its_limit_and_two_seconds(self):
        verdict = judged("def run(x, y):\n    while True: pass\n", limits=Limits(run=0.5))
        assert verdict.status == "hang"
        assert verdict.seconds < 0.5 + 2 + 10  # the last ten for starting an interpreter

    def test_a_signal_that_ends_it_is_named(self):
        verdict = judged("import os\n\n\ndef run(x, y):\n    os.abort()\n")
        assert "ended by SIGABRT" in verdict.detail


class TestContained:
    def test_secrets_of_the_environment_are_not_passed_on(self, monkeypatch):
        monkeypatch.setenv("CAKE_TEST_TOKEN", "secret")
        text = "import os\n\nassert 'CAKE_TEST_TOKEN' not in os.environ\n" + SOFTMAX
        assert judged(text).status == "passed"

    def test_files_of_the_user_are_out_of_sight(self, tmp_path):
        if not namespaces():
            pytest.skip("the kernel grants no namespaces here")
        (tmp_path / "key").write_text("secret")
        text = f"import os\n\nassert not os.path.exists({str(tmp_path)!r})\n" + SOFTMAX
        assert judged(text).status == "passed"

    def test_limits_hold_without_namespaces(self, tmp_path):
        how = Confinement(
            scratch=str(tmp_path),
            memory_bytes=4 << 30,
            file_bytes=MIB,
            cpu_seconds=60,
            namespaces=True,
        )
        read, write = os.pipe()
        pid = os.fork()
        if pid == 0:
            said = confine(how.without_namespaces())
            try:
                (tmp_path / "big").write_bytes(bytes(2 * MIB))
            except OSError as error:
                said += f"; {error.strerror}"
            os.write(write, said.encode())
            os._exit(0)
        os.waitpid(pid, 0)
        assert os.read(read, 1000).decode() == f"{LIMITS}; File too large"
        os.close(read)
        os.close(write)

    def test_only_foreign_code_is_confined(self, tmp_path):
        asked = evaluation(SOFTMAX)
        memory = confinement_of(asked, asked.candidate, tmp_path).memory_bytes
        assert 0 < memory <= 16 << 30
        assert confinement_of(asked, Candidate(runner="ir", entry="mine"), tmp_path) is None


class TestWays:
    """How a child is started, where a device does not open in the first way."""

    def test_a_gpu_is_tried_without_torch_and_then_without_namespaces(self, monkeypatch, tmp_path):
        tried = []

        class Fails(Child):
            def __init__(self, confinement, modules):
                tried.append((confinement.namespaces, modules))
                super().__init__(confinement, modules)

        monkeypatch.setattr(link, "Child", Fails)
        asked = evaluation(SOFTMAX, device="cuda")
        # The names of the runner and of the device are the child's business: both are wrong here.
        asked = dataclasses.replace(asked, plugins=("cake.judge.no_such_module",))
        with pytest.raises(JudgeUnavailable, match="no_such_module"):
            Link(asked, asked.candidate, tmp_path)
        ours = ("cake.judge.no_such_module",)
        assert tried == [(True, (*ours, "torch")), (True, ours), (False, ours)]

    def test_a_candidate_without_code_of_its_own_has_no_weaker_way(self, monkeypatch, tmp_path):
        tried = []

        class Fails(Child):
            def __init__(self, confinement, modules):
                tried.append((confinement, modules))
                super().__init__(confinement, modules)

        monkeypatch.setattr(link, "Child", Fails)
        asked = evaluation(SOFTMAX, candidate=Candidate(runner="ir", entry="x"))
        with pytest.raises(JudgeUnavailable, match="no runner is called `ir`"):
            Link(asked, asked.candidate, tmp_path)
        assert tried == [(None, (PLUGIN,))]


def test_while_one_side_runs_the_other_stands_still(tmp_path):
    text = """\
import threading


def count(y):
    while True:
        y[0, 0] = (y[0, 0] + 1) % 1024


def run(y):
    threading.Thread(target=count, args=(y,), daemon=True).start()
"""
    asked = evaluation(text)
    instance = problem(get("softmax"), CASE.shape, CASE.dtype)
    inputs = generate(get("softmax"), CASE.shape, CASE.dtype, "normal", 0)
    folders = [tmp_path / name for name in ("one", "other")]
    for folder in folders:
        folder.mkdir()
    with (
        Link(asked, asked.candidate, folders[0]) as one,
        Link(asked, asked.candidate, folders[1]) as other,
    ):
        one.build(CASE)
        track = Track(one, instance, folders[0] / "0", 0)
        track.lap(inputs, 30)

        def counted():
            return float(track._arguments.outputs()["y"][0, 0])

        def advances(seconds):
            before, end = counted(), time.monotonic() + seconds
            while time.monotonic() < end and counted() == before:
                time.sleep(0.01)
            return counted() != before

        assert advances(30)
        with other.alone([one, other]):
            time.sleep(0.05)  # the signal needs a moment to reach a thread on another core
            assert not advances(0.3)
        assert advances(30)
