"""Input families of Kimi Delta Attention."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from cake.workloads.contract import ContractError
from cake.workloads.expected import Array
from cake.workloads.families import fill, standard_families
from cake.workloads.inputs import Generator
from cake.workloads.kda_prefill.contract import CONTRACT
from cake.workloads.problem import Problem

STATE_SIZE = 0.25
"""Standard deviation of first states, of the order that states of normal values have."""


def bounds(problem: Problem) -> Array:
    """``cu``: where sequences begin, and the end of the last.

    Raises :class:`ContractError` if the parameter ``lengths`` does not fit N and T.
    """
    tokens, sequences = problem.dims["T"], problem.dims["N"]
    text = str(problem.parameters["lengths"])
    if text == "equal":
        return np.arange(sequences + 1) * tokens // max(sequences, 1)
    ends = np.cumsum([int(part) for part in text.split("+")])
    if len(ends) != sequences or ends[-1] != tokens:
        raise ContractError(
            f"kda_prefill: lengths {text} are {len(ends)} sequences of {ends[-1]} tokens; "
            f"the shape has N = {sequences} and T = {tokens}"
        )
    return np.concatenate([[0], ends])


def _standard(family: str, problem: Problem, rng: np.random.Generator) -> dict[str, Array]:
    """A family of all workloads for what is large; gates as the published benchmarks draw them."""
    made = {spec.name: fill(problem, spec, family, rng) for spec in problem.contract.inputs}
    made["a_log"] = rng.random(problem.shape_of("a_log"))
    made["dt_bias"] = rng.random(problem.shape_of("dt_bias"))
    made["h0"] = STATE_SIZE * made["h0"].astype(np.float64)
    made["cu"] = bounds(problem)
    return made


def _closed(problem: Problem, made: dict[str, Array]) -> None:
    """Decays of 0.9983 a token, in either form of the gate."""
    logit = -8.0 if problem.parameters["bounded"] else -6.4
    made["g"] = np.full(problem.shape_of("g"), logit)
    made["a_log"] = np.zeros(problem.shape_of("a_log"))
    made["dt_bias"] = np.zeros(problem.shape_of("dt_bias"))


def _closed_gates(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    _closed(problem, made)
    made["g"] = rng.uniform(-9.0, -6.1, problem.shape_of("g"))
    return made


def _trained(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    heads = (1, *problem.shape_of("k")[1:])
    spread = rng.uniform(0.1, 0.4, (heads[0], heads[1], 1))
    made["k"] = rng.standard_normal(heads) + spread * made["k"]
    made["q"] = rng.standard_normal(heads) + 0.5 * made["q"]
    made["beta"] = np.minimum(1.5 + 1.5 * made["beta"], 4.6)
    made["a_log"] = 0.1 * rng.standard_normal(problem.shape_of("a_log"))
    made["dt_bias"] = rng.uniform(-8.0, -1.3, problem.shape_of("dt_bias"))
    return made


def _strong_gates(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    # Logits of a few hundred: decays of nothing and of everything, also within one chunk.
    made["g"] = rng.choice(
        [-120.0, -4.0, 1.0, 120.0], problem.shape_of("g"), p=[0.4, 0.4, 0.1, 0.1]
    )
    made["a_log"] = np.full(problem.shape_of("a_log"), 1.5)
    return made


def _equal_keys(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    _closed(problem, made)
    one = rng.standard_normal((1, *problem.shape_of("k")[1:]))
    made["k"] = np.broadcast_to(one, problem.shape_of("k"))
    made["beta"] = np.full(problem.shape_of("beta"), 8.0)
    return made


def _positive(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    _closed(problem, made)
    for name in ("q", "k"):
        made[name] = rng.random(problem.shape_of(name))
    made["beta"] = np.full(problem.shape_of("beta"), 4.0)
    return made


def _nan(problem: Problem, rng: np.random.Generator) -> Mapping[str, Array]:
    made = _standard("normal", problem, rng)
    for n in range(1, problem.dims["N"], 2):
        tokens = slice(made["cu"][n], made["cu"][n + 1])
        for name in ("q", "k", "v", "g", "beta"):
            made[name][tokens] = np.nan
    return made


FAMILIES: Mapping[str, Generator] = {
    **{f.name: partial(_standard, f.name) for f in standard_families(CONTRACT.dimensions)},
    "trained": _trained,
    "strong_gates": _strong_gates,
    "closed_gates": _closed_gates,
    "equal_keys": _equal_keys,
    "positive": _positive,
    "nan": _nan,
}
