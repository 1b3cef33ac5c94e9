"""Exact nearest neighbours: few queries against a large database."""

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
    Dimension(name="Q", description="queries"),
    Dimension(name="M", description="database rows", minimum=1),
    Dimension(name="D", description="features", minimum=1),
    Dimension(name="k", description="neighbours of each query", minimum=1),
)

CONTRACT = Contract(
    name="knn_search",
    title="K nearest neighbours, exact, squared Euclidean distance",
    mathematics=(
        "ids[b, i] are the k rows m of least |q[b, i] - x[b, m]|^2, nearest first, and "
        "distances[b, i] these squares, ascending. Sums in f32 in any order, also as |q|^2 + |x|^2 "
        "- 2 q.x; equal to the float64 order wherever gaps exceed the f32 rounding of the sums. "
        "Ties go to the lowest m; every m occurs once. A distance that is NaN counts as +infinity."
    ),
    dimensions=_DIMENSIONS,
    tensors=(
        TensorSpec(name="q", role="input", dims=("B", "Q", "D"), dtype="T", description="queries"),
        TensorSpec(
            name="x", role="input", dims=("B", "M", "D"), dtype="T", description="database rows"
        ),
        TensorSpec(
            name="distances",
            role="output",
            dims=("B", "Q", "k"),
            dtype="f32",
            description="squared distances, ascending",
            tolerance=Tolerance(kind="float"),
        ),
        TensorSpec(
            name="ids",
            role="output",
            dims=("B", "Q", "k"),
            dtype="i32",
            description="indices of the nearest rows",
            tolerance=Tolerance(kind="ranked"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}},
    families=(
        *standard_families(_DIMENSIONS),
        DIGITS,
        EMBEDDINGS,
        Family(
            name="integer_ties",
            description="few distinct integer rows, each many times and far apart: among equal "
            "distances only the lowest indices are right",
        ),
        Family(
            name="near_ties",
            description="rows in pairs that differ by one rounding step in one feature, queries "
            "beside them",
        ),
        Family(
            name="approaching",
            description="each of the last 128 rows is nearer than all before it, so that the last "
            "ones win and every step of a search replaces its worst",
        ),
        Family(
            name="one_place",
            description="the nearest rows are neighbours in the database, the others far away",
        ),
        Family(
            name="far_from_origin",
            description="everything lies around a point 16 standard deviations from the origin: "
            "norms are large, gaps small",
        ),
        Family(name="self", description="the queries are rows of the database, at distance zero"),
        Family(name="nan", description="normal, NaN in some queries and in some rows"),
    ),
    shapes=load_shapes("cake.workloads.knn_search"),
    row_dims=("B", "Q"),
    row_elements="8 * M + D",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="distances, the least of them, and their order"),),
    timing_scope="all launches from q and x in device memory to both outputs in device memory",
    bytes_moved="q + x + distances + ids",
    flops="2 * B * Q * M * D",
    constraints=("k <= M",),
)
