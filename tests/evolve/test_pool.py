"""Worker processes: answers, faults of CAKE, crashes and hangs."""

import os
import signal

import pytest

from cake.evolve.pool import Pool, Task
from cake.evolve.setting import Setting
from cake.evolve.space import Point, variants_of
from cake.workloads import get, problem
from tests.evolve.samples import CASE
from tests.kernels.samples import SCALE, file


def setting() -> Setting:
    instance = problem(get("rmsnorm"), CASE.shape, CASE.dtype)
    return Setting(
        workload="rmsnorm",
        target="sm_90a",
        case=CASE,
        part="H200 SXM",
        device="cpu",
        baseline=None,
        seed=0,
        keep=1.0,
        variants=variants_of([file(SCALE)], instance),
    )


def point(warps: int = 1) -> Point:
    return Point(variant="sample", meta={"T": "bf16", "WARPS": warps, "DP": 128})


def test_a_setting_survives_json_with_the_order_of_its_domains() -> None:
    again = Setting.from_json(setting().to_json())
    assert again == setting()
    assert list(again.variants[0].domains) == ["T", "WARPS", "DP"]


@pytest.fixture(scope="module")
def pool():
    with Pool(setting(), 1) as made:
        yield made


def test_answers_hold_a_result_for_each_point(pool) -> None:
    (answer,) = pool.run([Task(kind="screen", points=(point(1), point(2)))])
    assert not answer.failure
    assert [r["meta"]["WARPS"] for r in answer.results] == [1, 2]
    assert all(r["status"] == "estimated" for r in answer.results)


def test_a_fault_of_cake_is_a_failure_with_its_trace_and_the_worker_lives_on(pool) -> None:
    unknown = Point(variant="no such variant", meta={})
    bad, good = pool.run(
        [Task(kind="screen", points=(unknown,)), Task(kind="screen", points=(point(),))]
    )
    assert (bad.failure, good.failure) == ("crashed", "")
    assert "Traceback" in bad.detail
    assert len(pool._idle) == 1


def test_a_process_that_dies_fails_its_task_alone(pool) -> None:
    os.kill(pool._idle[0]._process.pid, signal.SIGKILL)
    dead, good = pool.run([Task(kind="screen", points=(point(),))] * 2)
    assert (dead.failure, good.failure) == ("crashed", "")
    assert "SIGKILL" in dead.detail


def test_a_process_that_takes_too_long_is_killed() -> None:
    with Pool(setting(), 1, seconds=0.01) as pool:
        (answer,) = pool.run([Task(kind="examine", points=(point(),))])
        assert (answer.failure, answer.detail) == ("hang", "no answer within 0.01 s")
        assert not pool._idle
        assert not pool._busy


def test_a_caller_that_stops_early_leaves_no_stale_answer_and_no_process() -> None:
    tasks = [Task(kind="screen", points=(point(w),)) for w in (1, 2, 4)]
    with Pool(setting(), 2) as pool:
        answers = pool.run(tasks)
        next(answers)
        answers.close()
        assert not pool._busy
        (answer,) = pool.run([Task(kind="screen", points=(point(4), point(1)))])
        numbers = [w._process.pid for w in pool._idle]
    assert [r["meta"]["WARPS"] for r in answer.results] == [4, 1]
    for number in numbers:
        with pytest.raises(ProcessLookupError):
            os.kill(number, 0)
