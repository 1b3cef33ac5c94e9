"""Judge an implementation of a workload on one input family."""

import ml_dtypes
import numpy as np

from cake.workloads import compare, generate, get, names, problem, reference_outputs

BF16 = np.dtype(ml_dtypes.bfloat16)
SMALL = {name: get(name).shapes["small"][0] for name in names()}
GEMM = {"M": 64, "N": 64, "K": 256}


def judged(name, shape, dtype, family, make, seed=3, **options):
    """Compare ``make(problem, inputs)`` on one family."""
    contract = get(name)
    inputs = generate(contract, shape, dtype, family, seed)
    outputs = make(problem(contract, shape, dtype), inputs)
    return compare(contract, shape, dtype, inputs, outputs, **options)


def reference(made, inputs):
    shape = {**made.dims, **made.parameters}
    return reference_outputs(made.contract, shape, made.dtype, inputs)
