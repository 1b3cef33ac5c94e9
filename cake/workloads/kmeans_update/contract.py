"""Flash-KMeans update: new centroids from assigned points."""

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
    Dimension(name="K", description="clusters", minimum=1),
    Dimension(name="D", description="features", minimum=1),
)

CONTRACT = Contract(
    name="kmeans_update",
    title="K-means centroid update",
    mathematics=(
        "counts[b, k] = number of n with ids[b, n] = k; sums[b, k] = sum of their x[b, n] in f32 "
        "in any order; c_new[b, k] = sums / counts rounded once to the type of x, or c_old[b, k] "
        "where the cluster is empty. Ids outside [0, K) are undefined behaviour: the caller "
        "guarantees the range. A NaN reaches the same feature of its own cluster, nothing else."
    ),
    dimensions=_DIMENSIONS,
    tensors=(
        TensorSpec(name="x", role="input", dims=("B", "N", "D"), dtype="T", description="points"),
        TensorSpec(
            name="ids",
            role="input",
            dims=("B", "N"),
            dtype="i32",
            description="cluster of every point",
            values=("0", "K"),
        ),
        TensorSpec(
            name="c_old",
            role="input",
            dims=("B", "K", "D"),
            dtype="T",
            description="centroids that empty clusters keep",
        ),
        TensorSpec(
            name="c_new",
            role="output",
            dims=("B", "K", "D"),
            dtype="T",
            description="means",
            tolerance=Tolerance(kind="float"),
        ),
        TensorSpec(
            name="sums",
            role="output",
            dims=("B", "K", "D"),
            dtype="f32",
            description="sums of the points of each cluster",
            tolerance=Tolerance(kind="float"),
        ),
        TensorSpec(
            name="counts",
            role="output",
            dims=("B", "K"),
            dtype="i32",
            description="points of each cluster",
            tolerance=Tolerance(kind="exact"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}, "f32": {"T": "f32"}},
    families=(
        *standard_families(_DIMENSIONS),
        DIGITS,
        EMBEDDINGS,
        Family(name="one_cluster", description="all points in the last cluster"),
        Family(name="skewed", description="cluster sizes by Zipf's law; many clusters are empty"),
        Family(name="empty_clusters", description="only clusters of odd index have points"),
        Family(name="sorted_ids", description="ids ascending, so that whole tiles share one"),
        Family(name="nan", description="normal, NaN in a few points"),
    ),
    shapes=load_shapes("cake.workloads.kmeans_update"),
    row_dims=("B", "K"),
    row_elements="D",
    determinism="any-order",
    determinism_note="sums may add in any order (the deterministic variant fixes one)",
    baselines=("flashlib", "torch"),
    steps=(Step(name="main", description="sums, counts and means, clearing included"),),
    timing_scope="all launches from x, ids and c_old in device memory to the outputs there",
    bytes_moved="x + ids + c_new + sums + counts",
    flops="B * N * D + B * K * D",
)
