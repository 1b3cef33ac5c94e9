"""Scaled dot-product attention, forward: causal or not, with shared key and value heads."""

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
from cake.workloads.real import EMBEDDINGS

_DIMENSIONS = (
    Dimension(name="B", description="independent sequences"),
    Dimension(name="H", description="query heads"),
    Dimension(name="Hkv", description="key and value heads", minimum=1),
    Dimension(name="Lq", description="queries of a sequence"),
    Dimension(name="Lk", description="keys of a sequence"),
    Dimension(name="D", description="features of a head", minimum=1),
)
_KEYS = ("B", "Hkv", "Lk", "D")
_QUERIES = ("B", "H", "Lq", "D")

CONTRACT = Contract(
    name="attention",
    title="Attention forward",
    mathematics=(
        "o[b, h, i] = sum over the visible j of w[i, j] v[b, g, j], with g = h // (H / Hkv) and w "
        "the softmax over the visible j of q[b, h, i] . k[b, g, j] / sqrt(D). causal = 1: key j is "
        "visible to query i if j <= i + Lk - Lq (the last query sees every key); causal = 0: every "
        "key is. Scores, powers and sums in f32; a power, relative to a maximum of its row, may be "
        "rounded once to T before it weighs v. A query without visible keys gives zeros. A NaN in "
        "a query makes its row NaN, and no other; other inputs are finite."
    ),
    dimensions=_DIMENSIONS,
    parameters=(
        Parameter(
            name="causal", description="1: queries see no later key", default=1, choices=(0, 1)
        ),
    ),
    tensors=(
        TensorSpec(name="q", role="input", dims=_QUERIES, dtype="T", description="queries"),
        TensorSpec(name="k", role="input", dims=_KEYS, dtype="T", description="keys"),
        TensorSpec(name="v", role="input", dims=_KEYS, dtype="T", description="values"),
        TensorSpec(
            name="o",
            role="output",
            dims=_QUERIES,
            dtype="T",
            description="weighted values",
            tolerance=Tolerance(kind="float"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}},
    families=(
        *standard_families(_DIMENSIONS),
        EMBEDDINGS,
        Family(
            name="rising",
            description="scores rise by 4 from key to key: the last visible key outweighs all, "
            "and one that a mask lets through outweighs it",
        ),
        Family(
            name="falling",
            description="scores fall by 4 from key to key: the first key outweighs all others",
        ),
        Family(
            name="offset",
            description="scores near 300 or -300: powers overflow or vanish unless the maximum is "
            "subtracted",
        ),
        Family(
            name="equal_scores",
            description="queries are zero: each output is the mean of the visible values",
        ),
        Family(name="nan", description="normal, NaN in some queries"),
    ),
    shapes=load_shapes("cake.workloads.attention"),
    row_dims=("B", "H", "Lq"),
    row_elements="4 * Lk + 4 * D",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="scores, softmax and weighted values"),),
    timing_scope="all launches from q, k and v in device memory to o in device memory",
    bytes_moved="q + k + v + o",
    flops=(
        "4 * B * H * D * ((1 - causal) * Lq * Lk + causal * (min(Lq, Lk) * (Lk - min(Lq, Lk)) "
        "+ min(Lq, Lk) * (min(Lq, Lk) + 1) // 2))"
    ),
    constraints=("H % Hkv == 0",),
)
