"""Exact neighbour graph: every row of a database against all rows."""

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
from cake.workloads.real import DIGITS, EMBEDDINGS

_DIMENSIONS = (
    Dimension(name="B", description="independent problems"),
    Dimension(name="M", description="rows, which are database and queries", minimum=1),
    Dimension(name="D", description="features", minimum=1),
    Dimension(name="k", description="neighbours of each row", minimum=1),
)

CONTRACT = Contract(
    name="knn_build",
    title="Graph of the K nearest neighbours, exact, squared Euclidean distance",
    mathematics=(
        "ids[b, i] are the k rows m of least |x[b, i] - x[b, m]|^2, nearest first, and "
        "distances[b, i] these squares, ascending; with exclude_self, m = i is none of them. Sums "
        "in f32 in any order, also as |x_i|^2 + |x_m|^2 - 2 x_i.x_m; equal to the float64 order "
        "wherever gaps exceed the f32 rounding of the sums. Ties go to the lowest m; every m "
        "occurs once. A distance that is NaN counts as +infinity."
    ),
    dimensions=_DIMENSIONS,
    parameters=(
        Parameter(
            name="exclude_self",
            description="1: a row is no neighbour of itself",
            default=0,
            choices=(0, 1),
        ),
    ),
    tensors=(
        TensorSpec(name="x", role="input", dims=("B", "M", "D"), dtype="T", description="rows"),
        TensorSpec(
            name="distances",
            role="output",
            dims=("B", "M", "k"),
            dtype="f32",
            description="squared distances, ascending",
            tolerance=Tolerance(kind="float"),
        ),
        TensorSpec(
            name="ids",
            role="output",
            dims=("B", "M", "k"),
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
            name="twins",
            description="rows in pairs that differ by one rounding step in one feature: a row and "
            "its twin are nearly equally near",
        ),
        Family(
            name="strided",
            description="clusters far apart, whose members lie at a stride over the whole database",
        ),
        Family(
            name="far_from_origin",
            description="everything lies around a point 16 standard deviations from the origin: "
            "norms are large, gaps small",
        ),
        Family(name="nan", description="normal, NaN in some rows"),
    ),
    shapes=load_shapes("cake.workloads.knn_build"),
    row_dims=("B", "M"),
    row_elements="8 * M + D",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="distances, the least of them, and their order"),),
    timing_scope="all launches from x in device memory to both outputs in device memory",
    bytes_moved="x + distances + ids",
    # Distances are symmetric: half of the products are enough.
    flops="B * M * M * D",
    constraints=("k <= M - exclude_self",),
)
