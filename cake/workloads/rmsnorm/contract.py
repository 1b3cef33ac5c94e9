"""RMSNorm of rows with a learned weight."""

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
    Dimension(name="M", description="rows"),
    Dimension(name="D", description="elements of a row", minimum=1),
)

CONTRACT = Contract(
    name="rmsnorm",
    title="Root-mean-square normalisation",
    mathematics=(
        "y[m, d] = x[m, d] * w[d] / sqrt(mean over d of x[m, d]^2 + eps), all in f32, rounded "
        "once to the type of y (to nearest, ties to even). A row that holds a NaN is NaN; in a "
        "row that holds an infinity the infinite elements give NaN and the others 0."
    ),
    dimensions=_DIMENSIONS,
    parameters=(Parameter(name="eps", description="added to the mean of squares", default=1e-6),),
    tensors=(
        TensorSpec(name="x", role="input", dims=("M", "D"), dtype="T", description="rows"),
        TensorSpec(name="w", role="input", dims=("D",), dtype="T", description="weight"),
        TensorSpec(
            name="y",
            role="output",
            dims=("M", "D"),
            dtype="T",
            description="normalised rows",
            tolerance=Tolerance(kind="float"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}, "f32": {"T": "f32"}},
    families=(
        *standard_families(_DIMENSIONS),
        EMBEDDINGS,
        Family(name="tiny", description="mean squares of the size of eps, some rows zero"),
        Family(name="outliers", description="normal, one element of each row is 1000"),
        Family(name="nan", description="normal, NaN in some rows"),
        Family(name="infinite", description="normal, infinities of both signs in some rows"),
    ),
    shapes=load_shapes("cake.workloads.rmsnorm"),
    row_dims=("M",),
    row_elements="D",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="mean of squares and scaling"),),
    timing_scope="all launches from x and w in device memory to y in device memory",
    bytes_moved="x + w + y",
    flops="4 * M * D",
)
