"""GEMM: D = A B^T with f32 accumulation."""

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
    Dimension(name="B", description="independent products", minimum=0, optional=True),
    Dimension(name="M", description="rows of A and D"),
    Dimension(name="N", description="columns of D"),
    Dimension(name="K", description="length of the sums"),
)

CONTRACT = Contract(
    name="gemm",
    title="Matrix product, D = A B^T",
    mathematics=(
        "d[m, n] = sum over k of a[m, k] * b[n, k], products exact, sums in f32 in any order, "
        "rounded once to the type of d (to nearest, ties to even). K = 0 gives zeros. Infinities "
        "and NaN follow IEEE 754: one NaN in a row of a makes that row of d NaN."
    ),
    dimensions=_DIMENSIONS,
    parameters=(
        Parameter(
            name="b_layout",
            description="order of b in memory: nk as torch.nn.functional.linear, or kn",
            default="nk",
            choices=("nk", "kn"),
        ),
    ),
    tensors=(
        TensorSpec(
            name="a", role="input", dims=("B", "M", "K"), dtype="T", description="left operand"
        ),
        TensorSpec(
            name="b",
            role="input",
            dims=("B", "N", "K"),
            dtype="T",
            description="right operand",
            layout_parameter="b_layout",
            layouts={"nk": ("B", "N", "K"), "kn": ("B", "K", "N")},
        ),
        TensorSpec(
            name="d",
            role="output",
            dims=("B", "M", "N"),
            dtype="O",
            description="product",
            tolerance=Tolerance(kind="float"),
        ),
    ),
    dtypes={
        "bf16": {"T": "bf16", "O": "bf16"},
        "f16": {"T": "f16", "O": "f16"},
        "bf16_f32": {"T": "bf16", "O": "f32"},
        "f16_f32": {"T": "f16", "O": "f32"},
    },
    families=(
        *standard_families(_DIMENSIONS),
        EMBEDDINGS,
        Family(
            name="cancellation",
            description="the second half of K repeats a with the other sign, so that every sum "
            "of the first half is cancelled but for a small rest",
        ),
        Family(name="outliers", description="normal, one element in each row of a is 1000"),
        Family(name="nan", description="normal, NaN in some rows of a and one row of b"),
        Family(name="infinite", description="normal, infinities of both signs in some rows of a"),
    ),
    shapes=load_shapes("cake.workloads.gemm"),
    row_dims=("B", "M"),
    row_elements="N + K",
    determinism="bitwise",
    determinism_note="equal inputs give equal bits; a split of K has to be summed in fixed order",
    baselines=("torch",),
    steps=(Step(name="main", description="the product"),),
    timing_scope="all launches from inputs in device memory to d in device memory",
    bytes_moved="a + b + d",
    flops="2 * B * M * N * K",
)
