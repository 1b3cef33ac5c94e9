"""Flawed delta attention is caught by the contract's inputs and tolerance."""

import dataclasses

import numpy as np
import pytest

from cake.workloads import ContractError, compare, generate, get, problem, reference_outputs
from tests.workloads import honest
from tests.workloads.judging import judged

SHAPE = {"T": 60, "H": 2, "Hb": 3, "N": 3, "N1": 4, "D": 128, "V": 128, "lengths": "23+0+37"}


def caught(family, change, shape=SHAPE):
    """Whether an implementation whose problem or inputs are changed before it starts is wrong."""

    def flawed(made, inputs):
        return honest.kda_prefill(*change(made, dict(inputs)))

    assert judged("kda_prefill", shape, "bf16", family, honest.kda_prefill).ok
    return not judged("kda_prefill", shape, "bf16", family, flawed).ok


def with_parameters(**parameters):
    def change(made, inputs):
        return dataclasses.replace(made, parameters={**made.parameters, **parameters}), inputs

    return change


def with_inputs(**changes):
    def change(made, inputs):
        return made, {**inputs, **{name: edit(inputs[name]) for name, edit in changes.items()}}

    return change


@pytest.mark.parametrize("family", ["normal", "trained", "closed_gates"])
def test_the_wrong_gate_fails(family):
    assert caught(family, with_parameters(bounded=0))
    assert caught(family, with_parameters(bounded=1), {**SHAPE, "bounded": 0})
    assert caught(family, with_parameters(lower_bound=-4.0))


def test_gates_without_their_bias_or_factor_fail():
    assert caught("trained", with_inputs(dt_bias=np.zeros_like))
    assert caught("normal", with_inputs(a_log=np.zeros_like))


def test_beta_read_with_the_stride_of_the_heads_fails():
    def packed(beta):
        return np.resize(beta.reshape(-1), (len(beta), 2))

    assert caught("normal", with_inputs(beta=packed))


def test_states_that_run_on_into_the_next_sequence_fail():
    assert caught("normal", with_inputs(cu=lambda cu: np.array([0, 60, 60, 60])))
    assert caught("normal", with_parameters(initial=0))
    assert caught("normal", with_parameters(initial=1), {**SHAPE, "initial": 0})


def test_states_with_keys_and_values_exchanged_fail():
    assert caught("normal", with_inputs(h0=lambda h: np.ascontiguousarray(h.swapaxes(2, 3))))


def test_a_token_too_few_fails():
    shape = {**SHAPE, "T": 33, "N": 1, "N1": 2, "lengths": "33"}

    def short(made, inputs):
        return honest.kda_prefill(made, {**inputs, "cu": np.array([0, 32])})

    assert not judged("kda_prefill", shape, "bf16", "normal", short).ok


@pytest.mark.parametrize("lost", [1, 0])
def test_a_sequence_of_nan_spoils_itself_alone(lost):
    """NaN where they belong pass; in a neighbour's output, or absent, they fail."""
    shape = {**SHAPE, "lengths": "20+3+37"}
    contract = get("kda_prefill")
    inputs = generate(contract, shape, "bf16", "nan", 1)
    outputs = reference_outputs(contract, shape, "bf16", inputs)
    assert np.isnan(outputs["o"].astype(np.float32)).any(axis=(1, 2)).sum() == 3
    assert compare(contract, shape, "bf16", inputs, outputs).ok
    outputs["ht"][lost] = 0.0 if lost == 1 else np.nan
    assert not compare(contract, shape, "bf16", inputs, outputs).ok


def test_one_element_beyond_the_tolerance_is_named():
    contract = get("kda_prefill")
    inputs = generate(contract, SHAPE, "bf16", "normal", 1)
    outputs = reference_outputs(contract, SHAPE, "bf16", inputs)
    outputs["ht"][2, 1, 40, 7] += 0.05
    found = compare(contract, SHAPE, "bf16", inputs, outputs)
    assert [t.ok for t in found.tensors] == [True, False]
    assert "1 of 98304 elements are wrong; the worst is at [2, 1, 40, 7]" in found.detail


def test_small_errors_everywhere_exceed_the_relative_limit():
    contract = get("kda_prefill")
    inputs = generate(contract, SHAPE, "bf16", "normal", 1)
    outputs = reference_outputs(contract, SHAPE, "bf16", inputs)
    rng = np.random.default_rng(1)
    outputs["ht"] *= 1 + 0.015 * rng.choice([-1.0, 1.0], outputs["ht"].shape)
    found = compare(contract, SHAPE, "bf16", inputs, outputs)
    assert "relative L2 error 0.015, the limit is 0.01" in found.detail


def test_lengths_that_do_not_fit_are_refused():
    with pytest.raises(ContractError, match="2 sequences of 60 tokens; the shape has N = 3"):
        generate(get("kda_prefill"), {**SHAPE, "lengths": "23+37"}, "bf16", "normal", 0)
    with pytest.raises(ContractError, match="Hb >= H"):
        problem(get("kda_prefill"), {**SHAPE, "Hb": 1}, "bf16")


def test_trained_keys_are_alike():
    keys = generate(get("kda_prefill"), {**SHAPE, "H": 1}, "bf16", "trained", 0)["k"]
    rows = keys[:, 0].astype(np.float64)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = (rows @ rows.T)[np.triu_indices(len(rows), 1)]
    assert cosines.min() > 0.8
    assert cosines.max() < 0.995
