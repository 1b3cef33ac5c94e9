"""The torch baselines are right themselves. Without torch there is nothing to test."""

import pytest

from cake.judge import Candidate, Evaluation, TimingPlan, judge
from cake.workloads import get, names

pytest.importorskip("torch")


@pytest.mark.parametrize("name", names())
def test_torch_is_correct_in_the_candidates_place_and_timed_against_itself(name):
    contract = get(name)
    shapes = contract.shapes["small"]
    verdict = judge(
        Evaluation(
            workload=name,
            candidate=Candidate(runner="baseline", entry="torch"),
            cases=(shapes[0], shapes[-2], contract.shapes["edge"][-1]),
            families=("normal", "constant", "exact_integers"),
            timing=TimingPlan(baseline="torch", warmup=1, samples=3),
        )
    )
    wrong = [r for r in verdict.results if r.status != "passed"]
    assert verdict.status == "passed", wrong
    for timing in verdict.timings:
        assert timing.baseline is not None
        assert timing.speedup is not None
