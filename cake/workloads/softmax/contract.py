"""Softmax along the last axis."""

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
from cake.workloads.real import EMBEDDINGS

_DIMENSIONS = (
    Dimension(name="M", description="rows"),
    Dimension(name="N", description="elements of a row", minimum=1),
)

CONTRACT = Contract(
    name="softmax",
    title="Softmax of rows",
    mathematics=(
        "y[m, n] = exp(x[m, n] - max_m) / sum over j of exp(x[m, j] - max_m), all in f32, rounded "
        "once to the type of y (to nearest, ties to even). A row of nothing but -infinity is NaN, "
        "as in PyTorch; NaN and +infinity make their whole row NaN."
    ),
    dimensions=_DIMENSIONS,
    tensors=(
        TensorSpec(name="x", role="input", dims=("M", "N"), dtype="T", description="logits"),
        TensorSpec(
            name="y",
            role="output",
            dims=("M", "N"),
            dtype="T",
            description="probabilities",
            tolerance=Tolerance(kind="float"),
        ),
    ),
    dtypes={"bf16": {"T": "bf16"}, "f16": {"T": "f16"}, "f32": {"T": "f32"}},
    families=(
        *standard_families(_DIMENSIONS),
        EMBEDDINGS,
        Family(name="masked", description="normal, -infinity in half of the elements of a row"),
        Family(name="minus_infinity_rows", description="normal, some rows hold only -infinity"),
        Family(name="edge_maximum", description="the maximum is the first or the last element"),
        Family(
            name="offset",
            description="normal plus 100 in even rows and minus 100 in odd ones: exp overflows or "
            "vanishes unless the maximum is subtracted",
        ),
        Family(name="nan", description="normal, NaN in some rows"),
        Family(name="infinite", description="normal, +infinity in some rows"),
    ),
    shapes=load_shapes("cake.workloads.softmax"),
    row_dims=("M",),
    row_elements="N",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits",
    baselines=("torch",),
    steps=(Step(name="main", description="maximum, sum and scaling"),),
    timing_scope="all launches from x in device memory to y in device memory",
    bytes_moved="x + y",
    flops="5 * M * N",
)
