"""A whole search on the CPU: funnel, best schedule, outputs, errors."""

import json

import pytest

from cake.diag import CakeError
from cake.evolve import Budget, EvolveConfig, Store, resume, run
from cake.kernels import elaborate
from cake.lang.printer import digest
from cake.verify import smt
from tests.evolve.samples import SCALE, config, evaluated, schedule
from tests.kernels.samples import file


def test_every_point_ends_somewhere_and_the_best_passes_everything(finished) -> None:
    result, _ = finished
    funnel = result.funnel
    assert funnel["points"] == 3 * 3
    assert funnel["unfit"] == 3  # DP = 64 does not hold D = 128
    assert funnel["kept"] == funnel["passed"] == 6
    assert result.stopped == "exhausted"
    assert result.best is not None
    assert result.best.confirmed
    assert not result.best.measured


def test_what_is_reported_is_in_order_and_ends_at_the_total(finished) -> None:
    result, seen = finished
    phases = [p.phase for p in seen]
    assert phases == sorted(phases, key=["screen", "evaluate", "confirm"].index)
    assert [p.done for p in seen if p.phase == "evaluate"] == [1, 2, 3, 4, 5, 6]
    assert seen[-1].best_seconds == result.best.seconds


def test_the_best_schedule_is_the_authors_text_with_the_parameters_bound(finished) -> None:
    result, _ = finished
    text = (result.folder / "best" / "schedule.py").read_text(encoding="utf-8")
    assert "bewußt einfach" in text
    programs = elaborate(file(text, target=None)).programs
    assert "-".join(digest(p) for p in programs) == result.best.digest
    assert {p.target for p in programs} == {"sm_90a"}
    for kernel in ("squares", "scale"):
        assert f"{kernel}_kernel" in (result.folder / "best" / f"{kernel}.cu").read_text()


def test_the_summary_has_the_figures(finished) -> None:
    result, _ = finished
    data = json.loads((result.folder / "summary.json").read_text())
    assert (data["workload"], data["target"], data["stopped"]) == ("rmsnorm", "sm_90a", "exhausted")
    assert data["funnel"] == dict(result.funnel)
    assert data["best"]["ms"] == pytest.approx(result.best.seconds * 1e3)
    assert data["best"]["registers"].keys() == {"squares", "scale"}
    assert data["environment"]["gpu"] == "none"
    assert all((result.folder / name).is_file() for name in data["files"])


def test_candidates_findings_and_estimates_are_stored(finished) -> None:
    result, _ = finished
    with Store.open(result.folder, writable=False) as store:
        unfit = store.candidates("unfit")
        assert all("require(D <= 64) does not hold" in c.reason for c in unfit)
        assert [f["code"] for c, f in store.findings() if c in {u.id for u in unfit}] == [
            "CK831"
        ] * 3
        kept = store.candidates("kept")
        assert all(c.digest and c.estimate and len(c.estimate["kernels"]) == 2 for c in kept)
        assert all(len(e.record["cases"]) == 2 for e in store.evaluations())


def test_a_wrong_candidate_is_found_and_the_right_variant_wins(tmp_path) -> None:
    wrong = SCALE.replace("+ eps)", "+ eps + 1.0)")
    outside = SCALE.replace("store(sums[row]", "store(sums[row + M]")
    # Whether a row is written depends on numbers that only a run knows.
    unwritten = SCALE.replace("if lane() == 0:", "if lane() == 0 and total < 0.0:")
    files = (
        schedule(tmp_path, wrong, "wrong"),
        schedule(tmp_path, outside, "outside"),
        schedule(tmp_path, unwritten, "unwritten"),
        schedule(tmp_path),
    )
    result = run(config(tmp_path, *files, keep=0.01))
    assert result.best is not None
    assert result.best.variant == "sample"
    with Store.open(result.folder, writable=False) as store:
        names = {c.id: c.variant for c in store.candidates()}
        ended = {(names[e.candidate], e.status) for e in store.evaluations()}
    assert ended >= {("wrong", "incorrect"), ("unwritten", "simulation"), ("sample", "passed")}
    # Without the solver, that is left to the simulator.
    assert ("outside", "rejected" if smt.available() else "simulation") in ended


def test_equal_programs_are_evaluated_once(tmp_path) -> None:
    files = (schedule(tmp_path), schedule(tmp_path, "\n\n" + SCALE, "again"))
    result = run(config(tmp_path, *files, budget=Budget(max_evaluations=1)))
    assert result.funnel["duplicate"] == 6
    assert (result.stopped, result.evaluations) == ("evaluations", 1)


def test_a_larger_budget_goes_on_where_the_smaller_one_stopped(tmp_path, finished) -> None:
    first = run(config(tmp_path, keep=1.0, budget=Budget(max_evaluations=2)))
    before = evaluated(first.folder)
    assert (first.stopped, len(before)) == ("evaluations", 2)
    assert resume(first.folder, workers=1).evaluations == 2
    second = resume(first.folder, budget=Budget(max_evaluations=50, max_seconds=100), workers=1)
    assert evaluated(first.folder)[:2] == before
    assert second.stopped == "exhausted"
    assert second.best == finished[0].best


def test_no_time_left_is_said_with_what_was_not_reached(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("cake.evolve.screening.SCREEN_BATCH", 3)
    files = (schedule(tmp_path), schedule(tmp_path, SCALE.replace("eps)", "eps) * 1.0"), "other"))
    result = run(config(tmp_path, *files, budget=Budget(max_evaluations=9, max_seconds=1e-3)))
    assert (result.stopped, result.evaluations, result.best) == ("seconds", 0, None)
    assert "0.001 s is used up" in result.message
    assert result.funnel["points"] == 18
    assert result.funnel["unscreened"] == 15


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"workload": "rmsnorm", "target": "sm_90a", "shipped": False}, "CK820"),
        ({"workload": "gemm", "target": "sm_90a", "device": "cuda"}, "CK825"),
    ],
)
def test_what_cannot_start_says_why(tmp_path, options, code, monkeypatch) -> None:
    with pytest.raises(CakeError) as caught:
        run(EvolveConfig(out=tmp_path / "run", **options))
    assert caught.value.diagnostics[0].code == code
    assert not (tmp_path / "run").exists()


def test_a_shape_that_no_point_fits_lists_the_reasons(tmp_path) -> None:
    narrow = SCALE.replace("meta(64, 128, 256)", "meta(64, 32)")
    with pytest.raises(CakeError, match=r"(?s)no point of the space fits.*require\(D <= 64\)"):
        run(config(tmp_path, schedule(tmp_path, narrow)))


@pytest.mark.parametrize("bad", [{"keep": 0.0}, {"keep": 1.5}, {"workers": 0}])
def test_figures_out_of_range(bad) -> None:
    with pytest.raises(CakeError, match="CK826"):
        EvolveConfig(workload="gemm", target="sm_90a", **bad)


def test_budgets_are_positive() -> None:
    with pytest.raises(CakeError, match="CK826"):
        Budget(max_evaluations=0)
    with pytest.raises(CakeError, match="CK826"):
        Budget(max_seconds=float("nan"))
