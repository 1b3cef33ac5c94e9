"""Measuring with the judge: the flow with a judge that is told what to say, and on a real GPU."""

from dataclasses import replace

import pytest

from cake.diag import CakeError
from cake.evolve import Budget, Store, run
from cake.evolve.gpu import Gpu, find_gpu
from cake.judge import Summary, TimingResult, Verdict
from tests.evolve.samples import CASE, config


def verdict(status: str, ms: float | None = None) -> Verdict:
    timings = ()
    if ms is not None:
        timings = (
            TimingResult(
                case=CASE,
                clock="CUDA events",
                candidate=Summary.of([ms]),
                baseline_name="",
                baseline=None,
                speedup=None,
                status="passed",
                detail="",
            ),
        )
    return Verdict(
        status=status,
        workload="rmsnorm",
        candidate_hash="",
        runner="ir",
        device="cuda",
        detail="" if status == "passed" else "what the judge saw",
        results=(),
        timings=timings,
        environment={},
        output="",
        seconds=0.5,
    )


@pytest.fixture
def told(monkeypatch):
    """A GPU whose judge answers from two dictionaries, by the candidate's WARPS."""
    measured, graded = {}, {}
    for module in ("session", "start"):
        monkeypatch.setattr(f"cake.evolve.{module}.find_gpu", lambda target, device: Gpu(name="G"))
    monkeypatch.setattr("cake.evolve.session.measure", lambda s, p: measured[p.meta["WARPS"]])
    monkeypatch.setattr("cake.evolve.session.grade", lambda s, p, cases: graded[p.meta["WARPS"]])
    return measured, graded


def test_the_measured_time_decides_and_the_judges_no_is_kept(tmp_path, told) -> None:
    measured, graded = told
    measured |= {1: verdict("passed", 3.0), 2: verdict("passed", 2.0), 4: verdict("incorrect")}
    graded |= {w: verdict("passed") for w in (1, 2, 4)}
    result = run(replace(config(tmp_path, keep=1.0), device="auto"))
    assert result.best is not None
    assert (result.best.meta["WARPS"], result.best.seconds) == (2, pytest.approx(2e-3))
    assert result.best.measured
    assert result.best.confirmed
    assert (result.funnel["judge"], result.funnel["passed"]) == (2, 4)
    with Store.open(result.folder, writable=False) as store:
        (failed, *_) = (e for e in store.evaluations() if e.status == "judge")
        assert failed.detail == "incorrect: what the judge saw"
        assert Verdict.from_json(failed.verdict).status == "incorrect"
        assert [f["code"] for c, f in store.findings() if c == failed.candidate] == ["CK833"]


def test_a_winner_that_fails_its_grading_gives_way_to_the_next(tmp_path, told) -> None:
    measured, graded = told
    measured |= {1: verdict("passed", 3.0), 2: verdict("passed", 2.0), 4: verdict("passed", 4.0)}
    graded |= {1: verdict("passed"), 2: verdict("incorrect"), 4: verdict("passed")}
    result = run(replace(config(tmp_path, keep=1.0), device="auto"))
    assert result.best is not None
    assert (result.best.meta["WARPS"], result.best.confirmed) == (1, True)


def test_without_a_gpu_of_the_target_there_is_none(monkeypatch) -> None:
    assert find_gpu("sm_90a", "cpu") is None

    def other(ordinal: int):
        from cake.runtime.driver import Device

        return Device(
            ordinal=0,
            name="Another GPU",
            capability=(8, 9),
            sms=1,
            sm_clock_khz=1,
            memory_clock_khz=1,
            memory_bytes=1,
            l2_bytes=1,
            smem_per_block_bytes=1,
        )

    monkeypatch.setattr("cake.runtime.driver.device", other)
    assert find_gpu("sm_90a", "auto") is None
    assert find_gpu("sm_89", "auto") == Gpu(name="Another GPU")
    with pytest.raises(CakeError, match=r"needs a GPU of compute capability 9\.0; Another GPU has"):
        find_gpu("sm_90a", "cuda")


@pytest.mark.gpu
def test_a_search_measures_on_the_gpu(tmp_path) -> None:
    options = {"budget": Budget(max_evaluations=2, max_seconds=200), "workers": 2}
    result = run(replace(config(tmp_path, **options), device="cuda"))
    assert result.best is not None
    assert result.best.measured
    assert result.best.confirmed
