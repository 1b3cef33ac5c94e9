"""sm_90a: Hopper, H100 and H200."""

from __future__ import annotations

from cake.targets.citations import (
    BANKS,
    CC_TABLE,
    CLUSTERS,
    H100_PAPER,
    H200_RUN,
    H200_SHEET,
    HOPPER_BENCH,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
    device,
    from_tflops,
    ptx,
)
from cake.targets.cited import Source, fact
from cake.targets.limits import KIB, MIB, SetmaxnregLimits, TmaLimits
from cake.targets.mma_forms import (
    F64_MMA,
    FLOAT16_MMA,
    INT8_MMA,
    TF32_MMA,
    WGMMA,
    b1_mma,
    f64_wide_mma,
    float8_mma,
)
from cake.targets.model import Target
from cake.targets.rates import Ceilings, Part, Rates, TensorRate

_SAME_DIE = Source("derived", "H200 and H100 SXM5 have the same dense rates on the same 132 SMs")

TARGET = Target(
    name="sm_90a",
    capability=(9, 0),
    nvrtc_arch="sm_90a",
    smem_per_sm=fact(228 * KIB, CC_TABLE),
    smem_per_cta=fact(227 * KIB, CC_TABLE),
    smem_static_limit=fact(227 * KIB, PTXAS),
    warps_per_sm=fact(64, CC_TABLE),
    ctas_per_sm=fact(32, CC_TABLE),
    cluster_max_portable=fact(8, CLUSTERS),
    cluster_max_nonportable=fact(16, Source("manual", "NVIDIA Hopper Tuning Guide: clusters")),
    cp_async=True,
    ldmatrix=True,
    stmatrix=True,
    mbarrier_tx=True,
    bulk_copy=True,
    bulk_reduce=True,
    tma_reduce=True,
    tma_multicast=True,
    tensormap_replace=True,
    cluster=True,
    dsmem=True,
    pdl=True,
    elect_sync=True,
    redux_int=True,
    red_vector_f32=True,
    atomic_bf16x2=True,
    bf16x2_fma=True,
    bf16x2_add=True,
    bf16x2_transcendental=True,
    fp8_convert=True,
    tma=TmaLimits(
        element_types=fact(
            (
                *("u8", "i8", "e4m3", "e5m2", "bf16", "f16"),
                *("f32", "tf32", "i32", "u32", "f64", "i64"),
            ),
            ptx("Tensors, element types: 8-bit types travel as .u8"),
        )
    ),
    setmaxnreg=SetmaxnregLimits(),
    mma_sync=(
        *FLOAT16_MMA,
        *TF32_MMA,
        *float8_mma(native=False),
        *INT8_MMA,
        *f64_wide_mma(native=True),
        *F64_MMA,
        *b1_mma(native_and=True, native_xor=False),
    ),
    wgmma=WGMMA,
    rates=Rates(
        tensor=fact(
            (
                TensorRate(dtype="bf16", acc="f32", fma=2048),
                TensorRate(dtype="f16", acc="f32", fma=2048),
                TensorRate(dtype="f16", acc="f16", fma=2048),
                TensorRate(dtype="tf32", acc="f32", fma=1024),
                TensorRate(dtype="e4m3", acc="f32", fma=4096),
                TensorRate(dtype="e5m2", acc="f32", fma=4096),
                TensorRate(dtype="e4m3", acc="f16", fma=4096),
                TensorRate(dtype="e5m2", acc="f16", fma=4096),
                TensorRate(dtype="i8", acc="i32", fma=4096),
                TensorRate(dtype="u8", acc="i32", fma=4096),
                TensorRate(dtype="f64", acc="f64", fma=128),
            ),
            from_tflops(H100_PAPER, "1.83 GHz, f64: 1.98 GHz"),
        ),
        fp32_lanes=fact(128, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(16, THROUGHPUT),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(34, HOPPER_BENCH),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="H200 SXM",
            sms=fact(132, device("H200")),
            l2=fact(60 * MIB, device("H200")),
            dram=fact(4.8e12, H200_SHEET),
            clock=fact(1.83e9, _SAME_DIE),
            bf16_tensor=fact(989.5e12, H200_SHEET),
            measured=Ceilings(
                bf16_gemm=fact(789e12, H200_RUN),
                copy=fact(4.24e12, H200_RUN),
                clock_low=fact(1.75e9, H200_RUN),
                clock_high=fact(1.98e9, H200_RUN),
            ),
        ),
        Part(
            name="H100 SXM5",
            sms=fact(132, H100_PAPER),
            l2=fact(50 * MIB, H100_PAPER),
            dram=fact(3.352e12, H100_PAPER),
            clock=fact(1.83e9, H100_PAPER),
            bf16_tensor=fact(989.4e12, H100_PAPER),
        ),
    ),
)
