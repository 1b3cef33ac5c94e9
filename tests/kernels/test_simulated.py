"""Every shipped schedule in the simulator: all families of inputs, and odd shapes."""

import pytest

from tests.kernels.cases import EDGES, ODD, Trial, edge_trials, family_trials, files

TRIALS = [*family_trials(), *edge_trials()]


@pytest.mark.parametrize("trial", TRIALS, ids=[t.label for t in TRIALS])
def test_the_simulated_result_is_right(trial: Trial) -> None:
    inputs = trial.inputs()
    outputs, findings = trial.simulate(inputs)
    assert not findings, [d.message for d in findings]
    result = trial.judged(inputs, outputs)
    assert result.ok, result.detail


def test_shapes_belong_to_workloads() -> None:
    workloads = {workload for workload, _ in files()}
    assert set(ODD) == set(EDGES) <= workloads
