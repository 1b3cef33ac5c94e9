"""Flawed attention is caught by the contract's inputs and tolerance."""

import dataclasses

import ml_dtypes
import numpy as np
import pytest

from cake.workloads import ContractError, get, problem
from tests.workloads import honest
from tests.workloads.judging import judged

SHAPE = {"B": 1, "H": 4, "Hkv": 2, "Lq": 48, "Lk": 80, "D": 64}


def flawed(change, dtype="bf16"):
    """An implementation whose inputs or problem are changed before it starts."""

    def make(made, inputs):
        made, inputs = change(made, inputs)
        return honest.attention(made, inputs)

    return make


def caught(family, change, shape=SHAPE):
    assert judged("attention", shape, "bf16", family, honest.attention).ok
    return not judged("attention", shape, "bf16", family, flawed(change)).ok


def with_parameters(made, **parameters):
    return dataclasses.replace(made, parameters={**made.parameters, **parameters})


def test_a_missing_mask_fails():
    assert caught("normal", lambda made, inputs: (with_parameters(made, causal=0), inputs))


@pytest.mark.parametrize("by", [-1, 1])
def test_a_mask_that_is_off_by_one_key_fails(by):
    def make(made, inputs):
        keys = np.roll(inputs["k"], by, axis=2), np.roll(inputs["v"], by, axis=2)
        return made, {**inputs, "k": keys[0], "v": keys[1]}

    assert caught("rising", make)
    assert caught("equal_scores", make)


def test_a_mask_aligned_to_the_first_query_fails():
    """The last query sees all keys, also where there are more keys than queries."""

    def make(made, inputs):
        out = np.zeros_like(inputs["q"])
        few = {**made.dims, "Lk": made.dims["Lq"]}
        cut = {n: inputs[n][:, :, : few["Lk"]] for n in "kv"}
        out[:] = honest.attention(dataclasses.replace(made, dims=few), {**inputs, **cut})["o"]
        return {"o": out}

    assert not judged("attention", SHAPE, "bf16", "normal", make).ok


def test_a_query_head_with_the_wrong_keys_fails():
    def make(made, inputs):
        order = [0, 2, 1, 3]  # Heads modulo Hkv instead of divided by the heads of a group.
        return {"o": honest.attention(made, {**inputs, "q": inputs["q"][:, order]})["o"][:, order]}

    assert not judged("attention", SHAPE, "bf16", "normal", make).ok


def test_powers_without_the_maximum_fail_on_offset_scores():
    def make(made, inputs):
        q, k, v = (inputs[n].astype(np.float32) for n in "qkv")
        scores = q @ np.swapaxes(k, 2, 3) * np.float32(made.dims["D"] ** -0.5)
        with np.errstate(all="ignore"):
            powers = np.exp(scores)
            return {"o": honest.narrowed(powers @ v / powers.sum(-1, keepdims=True), made, "o")}

    shape = {**SHAPE, "Hkv": 4, "causal": 0}
    assert judged("attention", shape, "bf16", "normal", make).ok
    assert not judged("attention", shape, "bf16", "offset", make).ok


def test_a_forgotten_last_or_first_key_fails():
    def without(key):
        def make(made, inputs):
            v = inputs["v"].copy()
            v[:, :, key] = 0
            return made, {**inputs, "v": v}

        return make

    assert caught("rising", without(-1))
    assert caught("falling", without(0))


def test_values_in_eight_bits_fail():
    def make(made, inputs):
        narrow = inputs["v"].astype(np.float32).astype(ml_dtypes.float8_e4m3fn)
        return made, {**inputs, "v": narrow.astype(inputs["v"].dtype)}

    assert caught("normal", make)


def test_a_query_without_visible_keys_gives_zeros():
    shape = {**SHAPE, "Lq": 80, "Lk": 48}

    def make(made, inputs):
        right = honest.attention(made, inputs)
        right["o"][0, 0, 31, 0] = 1
        return right

    assert judged("attention", shape, "bf16", "normal", honest.attention).ok
    result = judged("attention", shape, "bf16", "normal", make)
    assert result.tensors[0].worst.index == (0, 0, 31, 0)
    assert result.tensors[0].worst.expected == 0


def test_operations_of_the_visible_pairs():
    def flops(**changes):
        return problem(get("attention"), {**SHAPE, **changes}, "bf16").flops

    pairs = sum(min(80, i + 80 - 48 + 1) for i in range(48))
    assert flops() == 4 * 4 * 64 * pairs
    assert flops(causal=0) == 4 * 4 * 64 * 48 * 80
    assert flops(Lq=80, Lk=48) == 4 * 4 * 64 * 48 * 49 // 2


def test_heads_that_do_not_share_evenly_are_refused():
    with pytest.raises(ContractError, match="violates `H % Hkv == 0`"):
        problem(get("attention"), {**SHAPE, "H": 5}, "bf16")
