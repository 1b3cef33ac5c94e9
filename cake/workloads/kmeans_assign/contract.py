"""Flash-KMeans assignment: the nearest centroid of every point."""

from cake.workloads.contract import (
    Contract,
    Dimension,
    Family,
    Step,
    TensorSpec,
    Tolerance,
    load_shapes,
)
from cake.workloads.families import standard_families
from cake.workloads.real import DIGITS, EMBEDDINGS

_DIMENSIONS = (
    Dimension(name="B", description="independent problems"),
    Dimension(name="N", description="points"),
    Dimension(name="K", description="centroids", minimum=1),
    Dimension(name="D", description="features", minimum=1),
)

CONTRACT = Contract(
    name="kmeans_assign",
    title="K-means assignment, exact argmin",
    mathematics=(
        "ids[b, n] = argmin over k of |c[b, k]|^2 - 2 x[b, n] . c[b, k], sums in f32 in any "
        "order; equal to the float64 argmin wherever the gap between both scores exceeds the f32 "
        "rounding of their sums. Ties go to the lowest k. A score that is NaN or +infinity never "
        "wins; a point without a winner (one that holds a NaN) gets id 0."
    ),
    dimensions=_DIMENSIONS,
    tensors=(
        TensorSpec(name="x", role="input", dims=("B", "N", "D"), dtype="T", description="points"),
        TensorSpec(
            name="c", role="input", dims=("B", "K", "D"), dtype="T", description="centroids"
        ),
        TensorSpec(
            name="csq",
            role="workspace",
            dims=("B", "K"),
            dtype="f32",
            description="squared norms of the centroids",
        ),
        TensorSpec(
            name="ids",
            role="output",
            dims=("B", "N"),
            dtype="i32",
            description="index of the nearest centroid",
            tolerance=Tolerance(kind="argmin"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}, "f32": {"T": "f32"}},
    families=(
        *standard_families(_DIMENSIONS),
        DIGITS,
        EMBEDDINGS,
        Family(
            name="integer_ties",
            description="few distinct integer centroids, each many times and far apart in k: "
            "only the lowest index is right",
        ),
        Family(
            name="near_ties",
            description="centroids in pairs that differ by one rounding step in one feature, "
            "points beside them",
        ),
        Family(
            name="descending",
            description="each of the last 128 centroids is nearer than all before it, so that "
            "the very last one wins and every step of the search replaces the best",
        ),
        Family(
            name="feature_precision",
            description="centroids are unit vectors, features integers just above 4096: the "
            "choice depends on the last of 13 bits, which tf32 does not keep",
        ),
        Family(
            name="far_from_origin",
            description="small clusters 16 standard deviations from the origin: norms are large, "
            "gaps small",
        ),
        Family(name="nan", description="normal, NaN in some points"),
    ),
    shapes=load_shapes("cake.workloads.kmeans_assign"),
    row_dims=("B", "N"),
    row_elements="K + D",
    determinism="bitwise",
    determinism_note="equal inputs give equal ids",
    baselines=("flashlib", "torch"),
    steps=(
        Step(name="prepare", description="squared norms of the centroids", produces=("csq",)),
        Step(name="main", description="scores and their argmin"),
    ),
    timing_scope="prepare and main: from x and c in device memory to ids in device memory",
    bytes_moved="x + c + ids",
    flops="2 * B * N * K * D",
)
