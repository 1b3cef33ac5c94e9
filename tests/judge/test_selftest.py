"""The self-test: every class is whole, and does what it says.

Classes that measure times, or take a machine to its limits, are left to `cake selftest`.
"""

from pathlib import Path

import pytest

import cake.judge.selftest
from cake.judge import JudgeUnavailable
from cake.judge.selftest import classes, run
from cake.judge.selftest.twins import IntegrityClass, Outcome
from tests.judge.test_confinement import namespaces

QUICK = [c.name for c in classes() if c.device == "cpu" and not c.timed and c.name != "exhaustion"]


def test_one_file_per_class_named_after_it():
    folder = Path(cake.judge.selftest.__file__).parent
    files = {path.stem for path in folder.glob("*.py")}
    names = [each.name.replace("-", "_") for each in classes()]
    assert len(names) == len(set(names))
    assert files - {*names} == {"__init__", "catalogue", "sources", "twins"}


@pytest.mark.parametrize("each", classes(), ids=lambda each: each.name)
def test_a_class_has_cheats_and_says_what_catches_them(each):
    assert each.cheats
    assert each.description
    assert each.caught_by
    if isinstance(each.because, str):
        assert each.because
    else:
        assert each.because.keys() == each.cheats.keys()


@pytest.mark.parametrize("name", QUICK)
def test_cheats_are_caught_and_honest_twins_pass(name):
    if name == "escape" and not namespaces():
        pytest.skip("the kernel grants no namespaces here")
    chosen = next(each for each in classes() if each.name == name)
    assert [r for r in run(chosen) if not r.ok] == []


@pytest.mark.gpu
@pytest.mark.parametrize("name", [each.name for each in classes() if each.device == "cuda"])
def test_cheats_are_caught_on_a_gpu(name):
    chosen = next(each for each in classes() if each.name == name)
    assert [r for r in run(chosen) if not r.ok] == []


def test_being_caught_for_another_reason_is_not_enough():
    def trial(caught, evidence):
        return lambda: Outcome(caught=caught, evidence=evidence)

    each = IntegrityClass(
        name="made-up",
        description="",
        caught_by="",
        because="never written",
        cheats={"typo": trial(True, "build_failed"), "missed": trial(False, "never written")},
        honest=trial(True, "incorrect"),
    )
    assert [report.ok for report in run(each)] == [False, False, False]


def test_a_judge_that_cannot_work_has_caught_nothing():
    def unavailable():
        raise JudgeUnavailable("no GPU")

    each = IntegrityClass(
        name="made-up",
        description="",
        caught_by="",
        because=".",
        cheats={"cheat": unavailable},
        honest=unavailable,
    )
    assert [report.ok for report in run(each)] == [False, False]
