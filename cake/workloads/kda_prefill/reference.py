"""Float64 reference of Kimi Delta Attention: the recurrence, token by token."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from cake.workloads.expected import Array, Expected, ExpectedFloat, Floats, Ints, wide
from cake.workloads.problem import Problem

TOLERANCE = 1e-2
NORM_EPSILON = 1e-6


def reference(problem: Problem, inputs: Mapping[str, Array], rows: Ints) -> Mapping[str, Expected]:
    """``o`` [rows, T, V] and ``ht`` [rows, N, V, D] of the heads ``rows``, in float64."""
    tokens, sequences = problem.dims["T"], problem.dims["N"]
    width, depth = problem.dims["V"], problem.dims["D"]
    outputs = np.zeros((len(rows), tokens, width))
    states = np.zeros((len(rows), sequences, width, depth))
    for at, head in enumerate(rows):
        decay = np.exp(gate(problem, inputs, int(head)))
        q, k, v = (wide(inputs[name][:, head]) for name in "qkv")
        b = sigmoid(wide(inputs["beta"][:, head]))
        q, k = normalised(q) / np.sqrt(depth), normalised(k)
        for n in range(sequences):
            part = slice(int(inputs["cu"][n]), int(inputs["cu"][n + 1]))
            if problem.parameters["initial"]:
                states[at, n] = wide(inputs["h0"][n, head])
            outputs[at, part] = walk(states[at, n], q[part], k[part], v[part], decay[part], b[part])
    return {"o": _expected(outputs), "ht": _expected(states)}


def gate(problem: Problem, inputs: Mapping[str, Array], head: int) -> Floats:
    """Natural logarithms of a head's decays [T, D]."""
    x = wide(inputs["g"][:, head]) + wide(inputs["dt_bias"][head])
    factor = np.exp(wide(inputs["a_log"])[head])
    if problem.parameters["bounded"]:
        return problem.number("lower_bound") * sigmoid(factor * x)
    open_gate: Floats = -factor * (np.maximum(x, 0.0) + np.log1p(np.exp(-np.abs(x))))
    return open_gate


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x), which overflows for no finite x."""
    half: Floats = 0.5 * (1.0 + np.tanh(0.5 * x))
    return half


def normalised(rows: Floats) -> Floats:
    """Rows over their norms, which an epsilon keeps from zero."""
    made: Floats = rows / np.sqrt(np.square(rows).sum(-1, keepdims=True) + NORM_EPSILON)
    return made


def walk(state: Floats, q: Floats, k: Floats, v: Floats, decay: Floats, b: Floats) -> Floats:
    """The outputs of a sequence; ``state`` [V, D] is brought from its first to its last value."""
    outputs = np.empty_like(v)
    for t in range(len(q)):
        state *= decay[t]
        update = b[t] * (v[t] - state @ k[t])
        state += np.multiply.outer(update, k[t])
        outputs[t] = state @ q[t]
    return outputs


def _expected(values: Floats) -> ExpectedFloat:
    """Values with their elementwise tolerance, heads along the first axis."""
    flat = values.reshape(len(values), -1)
    count = max(flat.shape[1], 1)
    size = np.sqrt(np.nansum(np.square(flat), axis=1, keepdims=True) / count)
    bound = TOLERANCE * (np.maximum(size, 1.0) + np.abs(flat))
    return ExpectedFloat(value=flat, bound=np.where(np.isfinite(flat), bound, 0.0))
