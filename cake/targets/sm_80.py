"""sm_80: Ampere, A100."""

from __future__ import annotations

from cake.targets.citations import (
    A100_PAPER,
    BANKS,
    CC_TABLE,
    NO_CLUSTERS,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
)
from cake.targets.cited import Source, fact
from cake.targets.limits import KIB, MIB
from cake.targets.mma_forms import F64_MMA, FLOAT16_MMA, INT8_MMA, TF32_MMA, b1_mma
from cake.targets.model import Target
from cake.targets.rates import Part, Rates, TensorRate

_L2 = Source("derived", f"{A100_PAPER.text}: L2 reads of 5120 bytes per clock over 108 SMs")

TARGET = Target(
    name="sm_80",
    capability=(8, 0),
    nvrtc_arch="sm_80",
    smem_per_sm=fact(164 * KIB, CC_TABLE),
    smem_per_cta=fact(163 * KIB, CC_TABLE),
    smem_static_limit=fact(48 * KIB, PTXAS),
    warps_per_sm=fact(64, CC_TABLE),
    ctas_per_sm=fact(32, CC_TABLE),
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
                TensorRate(dtype="bf16", acc="f32", fma=1024),
                TensorRate(dtype="f16", acc="f32", fma=1024),
                TensorRate(dtype="f16", acc="f16", fma=1024),
                TensorRate(dtype="tf32", acc="f32", fma=512),
                TensorRate(dtype="i8", acc="i32", fma=2048),
                TensorRate(dtype="u8", acc="i32", fma=2048),
                TensorRate(dtype="f64", acc="f64", fma=64),
                TensorRate(dtype="b1", acc="i32", fma=16384),
            ),
            A100_PAPER,
        ),
        fp32_lanes=fact(64, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(16, THROUGHPUT),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(47, _L2),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="A100 SXM4 80GB",
            sms=fact(108, A100_PAPER),
            l2=fact(40 * MIB, A100_PAPER),
            dram=fact(2.039e12, Source("datasheet", "NVIDIA A100 80GB datasheet: A100 SXM")),
            clock=fact(1.41e9, A100_PAPER),
            bf16_tensor=fact(312e12, A100_PAPER),
        ),
    ),
)
