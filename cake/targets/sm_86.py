"""sm_86: Ampere GA10x, GeForce RTX 30, A10, A40, RTX A6000.

Tensor rates are GeForce's, which halve f32 accumulation; A10, A40 and RTX A6000 do not.
"""

from __future__ import annotations

from cake.targets.citations import (
    BANKS,
    CC_TABLE,
    GA102_PAPER,
    NO_CLUSTERS,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
    from_tflops,
)
from cake.targets.cited import Source, fact
from cake.targets.limits import KIB
from cake.targets.mma_forms import F64_MMA, FLOAT16_MMA, INT8_MMA, TF32_MMA, b1_mma
from cake.targets.model import Target
from cake.targets.rates import Part, Rates, TensorRate

TARGET = Target(
    name="sm_86",
    capability=(8, 6),
    nvrtc_arch="sm_86",
    smem_per_sm=fact(100 * KIB, CC_TABLE),
    smem_per_cta=fact(99 * KIB, CC_TABLE),
    smem_static_limit=fact(48 * KIB, PTXAS),
    warps_per_sm=fact(48, CC_TABLE),
    ctas_per_sm=fact(16, CC_TABLE),
    cluster_max_portable=fact(1, NO_CLUSTERS),
    cluster_max_nonportable=fact(1, NO_CLUSTERS),
    cp_async=True,
    ldmatrix=True,
    redux_int=True,
    bf16x2_fma=True,
    mma_sync=(
        *FLOAT16_MMA,
        *TF32_MMA,
        *INT8_MMA,
        *F64_MMA,
        *b1_mma(native_and=True, native_xor=True),
    ),
    rates=Rates(
        tensor=fact(
            (
                TensorRate(dtype="bf16", acc="f32", fma=256),
                TensorRate(dtype="f16", acc="f32", fma=256),
                TensorRate(dtype="f16", acc="f16", fma=512),
                TensorRate(dtype="tf32", acc="f32", fma=128),
                TensorRate(dtype="i8", acc="i32", fma=1024),
                TensorRate(dtype="u8", acc="i32", fma=1024),
            ),
            from_tflops(GA102_PAPER, "1.695 GHz"),
        ),
        fp32_lanes=fact(128, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(16, THROUGHPUT),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(None, Source("unknown", "no public figure found")),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="GeForce RTX 3090",
            sms=fact(82, GA102_PAPER),
            l2=fact(6144 * KIB, GA102_PAPER),
            dram=fact(936e9, GA102_PAPER),
            clock=fact(1.695e9, GA102_PAPER),
            bf16_tensor=fact(71e12, GA102_PAPER),
        ),
    ),
)
