"""sm_89: Ada, GeForce RTX 40, L4, L40S, RTX 6000 Ada.

Tensor rates are GeForce's, which halve f32 accumulation; L40S and RTX 6000 Ada do not.
"""

from __future__ import annotations

from cake.targets.citations import (
    AD102_PAPER,
    ADA_BENCH,
    BANKS,
    CC_TABLE,
    NO_CLUSTERS,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
    from_tflops,
)
from cake.targets.cited import fact
from cake.targets.limits import KIB
from cake.targets.mma_forms import F64_MMA, FLOAT16_MMA, INT8_MMA, TF32_MMA, b1_mma, float8_mma
from cake.targets.model import Target
from cake.targets.rates import Part, Rates, TensorRate

TARGET = Target(
    name="sm_89",
    capability=(8, 9),
    nvrtc_arch="sm_89",
    smem_per_sm=fact(100 * KIB, CC_TABLE),
    smem_per_cta=fact(99 * KIB, CC_TABLE),
    smem_static_limit=fact(48 * KIB, PTXAS),
    warps_per_sm=fact(48, CC_TABLE),
    ctas_per_sm=fact(24, CC_TABLE),
    cluster_max_portable=fact(1, NO_CLUSTERS),
    cluster_max_nonportable=fact(1, NO_CLUSTERS),
    cp_async=True,
    ldmatrix=True,
    redux_int=True,
    bf16x2_fma=True,
    fp8_convert=True,
    mma_sync=(
        *FLOAT16_MMA,
        *TF32_MMA,
        *float8_mma(native=True),
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
                TensorRate(dtype="e4m3", acc="f32", fma=512),
                TensorRate(dtype="e5m2", acc="f32", fma=512),
                TensorRate(dtype="e4m3", acc="f16", fma=1024),
                TensorRate(dtype="e5m2", acc="f16", fma=1024),
                TensorRate(dtype="i8", acc="i32", fma=1024),
                TensorRate(dtype="u8", acc="i32", fma=1024),
            ),
            from_tflops(AD102_PAPER, "2.52 GHz"),
        ),
        fp32_lanes=fact(128, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(16, THROUGHPUT),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(13, ADA_BENCH),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="GeForce RTX 4090",
            sms=fact(128, AD102_PAPER),
            l2=fact(73728 * KIB, AD102_PAPER),
            dram=fact(1.008e12, AD102_PAPER),
            clock=fact(2.52e9, AD102_PAPER),
            bf16_tensor=fact(165.2e12, AD102_PAPER),
        ),
    ),
)
