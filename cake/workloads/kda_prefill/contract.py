"""Kimi Delta Attention, forward over packed sequences."""

from cake.workloads.contract import (
    Contract,
    Dimension,
    Family,
    Parameter,
    Step,
    TensorSpec,
    Tolerance,
    load_shapes,
)
from cake.workloads.families import standard_families

_DIMENSIONS = (
    Dimension(name="T", description="tokens of all sequences"),
    Dimension(name="H", description="heads"),
    Dimension(name="Hb", description="elements from one token of beta to the next"),
    Dimension(name="N", description="sequences"),
    Dimension(name="N1", description="bounds of the sequences", minimum=1),
    Dimension(name="D", description="features of a key", minimum=1),
    Dimension(name="V", description="features of a value", minimum=1),
)
_KEYS = ("T", "H", "D")
_VALUES = ("T", "H", "V")
_STATE = ("N", "H", "V", "D")
# bf16 products of f32 sums: the error of a whole sequence, not of its last rounding.
_TOLERANCE = Tolerance(kind="float", output_ulps=0.0, rel_l2=1e-2)

CONTRACT = Contract(
    name="kda_prefill",
    title="Kimi Delta Attention, prefill",
    mathematics=(
        "For each sequence n, tokens cu[n] to cu[n + 1] - 1 in order, and each head, with a state "
        "S [V, D] that starts as h0 (as zeros if initial = 0) and ends as ht: "
        "qn = q / sqrt(sum q^2 + 1e-6), kn likewise, b = sigmoid(beta); "
        "a = lower_bound * sigmoid(exp(a_log) (g + dt_bias)) if bounded = 1, else "
        "a = -exp(a_log) * softplus(g + dt_bias); S = S * exp(a) along D; u = b (v - S kn); "
        "S = S + u kn^T; o = S qn / sqrt(D). Only the first H of the Hb elements of a token's beta "
        "count. A batch of B sequences of equal length is the packed form with N = B. Sequences "
        "may be empty. A sequence of NaN makes its own outputs NaN, and no other's. o and ht each "
        "have a relative L2 error below 1e-2, and an element an error below 1e-2 times the sum of "
        "its size and the larger of 1 and its head's root mean square. ht may be h0's memory."
    ),
    dimensions=_DIMENSIONS,
    parameters=(
        Parameter(
            name="bounded", description="1: gates above lower_bound", default=1, choices=(0, 1)
        ),
        Parameter(name="lower_bound", description="least log decay of a token", default=-5.0),
        Parameter(
            name="initial", description="0: states start as zeros", default=1, choices=(0, 1)
        ),
        Parameter(
            name="lengths",
            description="lengths of the sequences, joined by +; equal: as equal as T admits",
            default="equal",
        ),
    ),
    tensors=(
        TensorSpec(name="q", role="input", dims=_KEYS, dtype="bf16", description="queries"),
        TensorSpec(name="k", role="input", dims=_KEYS, dtype="bf16", description="keys"),
        TensorSpec(name="v", role="input", dims=_VALUES, dtype="bf16", description="values"),
        TensorSpec(name="g", role="input", dims=_KEYS, dtype="bf16", description="gate logits"),
        TensorSpec(
            name="beta", role="input", dims=("T", "Hb"), dtype="bf16", description="logits of b"
        ),
        TensorSpec(
            name="a_log", role="input", dims=("H",), dtype="f32", description="log gate factors"
        ),
        TensorSpec(
            name="dt_bias", role="input", dims=("H", "D"), dtype="f32", description="gate biases"
        ),
        TensorSpec(
            name="cu", role="input", dims=("N1",), dtype="i64", description="bounds of sequences"
        ),
        TensorSpec(name="h0", role="input", dims=_STATE, dtype="S", description="first states"),
        TensorSpec(
            name="o",
            role="output",
            dims=_VALUES,
            dtype="bf16",
            description="outputs",
            tolerance=_TOLERANCE,
        ),
        TensorSpec(
            name="ht",
            role="output",
            dims=_STATE,
            dtype="S",
            description="last states",
            tolerance=_TOLERANCE,
        ),
    ),
    dtypes={"bf16": {"S": "f32"}, "bf16_states": {"S": "bf16"}},
    families=(
        *standard_families(_DIMENSIONS),
        Family(
            name="trained",
            description="as in a trained layer: keys of a head have cosines of 0.84 to 0.99, b is "
            "up to 0.99, dt_bias from -8 to -1.3, states are not zero",
        ),
        Family(
            name="strong_gates",
            description="some channels of a token decay by more than 2^-126, others hardly",
        ),
        Family(name="closed_gates", description="decays of a token above 0.988 everywhere"),
        Family(name="equal_keys", description="all keys of a head are one, b is nearly 1"),
        Family(
            name="positive",
            description="features of queries and keys are uniform in [0, 1), gates closed, b 0.98",
        ),
        Family(
            name="nan",
            description="every other sequence is NaN: tiles at its borders must not carry it on",
        ),
    ),
    shapes=load_shapes("cake.workloads.kda_prefill"),
    row_dims=("H",),
    row_elements="T * (D + V) + N * V * D",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("fla", "flash_kda", "torch"),
    steps=(Step(name="main", description="gates, products within chunks, states and outputs"),),
    timing_scope="all launches from q, k, v, g, beta and h0 in device memory to o and ht there",
    bytes_moved="q + k + v + g + beta + h0 + o + ht",
    flops="7 * T * H * D * V",
    constraints=("Hb >= H", "N1 == N + 1", "N > 0 or T == 0"),
)
