"""sm_103a: Blackwell Ultra, B300 and GB300."""

from __future__ import annotations

from cake.targets.citations import (
    BANKS,
    CC_TABLE,
    CLUSTERS,
    HGX_BRIEF,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
    device,
    from_tflops,
    ptx,
)
from cake.targets.cited import Source, fact
from cake.targets.limits import KIB, MIB, SetmaxnregLimits, TmaLimits, TmemLimits
from cake.targets.mma_forms import (
    F64_MMA,
    FLOAT8,
    FLOAT16_MMA,
    INT8_MMA,
    TCGEN05,
    TCGEN05_K96,
    TF32_MMA,
    b1_mma,
    f8f6f4_mma,
    f64_wide_mma,
    float8_mma,
)
from cake.targets.model import Target
from cake.targets.rates import Part, Rates, TensorRate

_L2 = Source(
    "measured",
    "Chips and Cheese, Nvidia's B200 (2025): 21 TB/s of L2 reads; B300 has the same cache and SMs",
)
_NO_LARGER = Source("derived", "no cluster larger than the portable one is documented for 10.3")
_SFU = Source("derived", f"{HGX_BRIEF.text}: 10.7e12 exp2 per second against 5e12 on B200")
_CLOCK = Source("derived", f"{HGX_BRIEF.text}: dense bf16 FLOP/s / (2 x 148 SMs x 4096)")

TARGET = Target(
    name="sm_103a",
    capability=(10, 3),
    nvrtc_arch="sm_103a",
    smem_per_sm=fact(228 * KIB, CC_TABLE),
    smem_per_cta=fact(227 * KIB, CC_TABLE),
    smem_static_limit=fact(227 * KIB, PTXAS),
    warps_per_sm=fact(64, CC_TABLE),
    ctas_per_sm=fact(32, CC_TABLE),
    cluster_max_portable=fact(8, CLUSTERS),
    cluster_max_nonportable=fact(8, _NO_LARGER),
    cp_async=True,
    ldmatrix=True,
    ldmatrix_b8=True,
    stmatrix=True,
    stmatrix_b8=True,
    mbarrier_tx=True,
    bulk_copy=True,
    bulk_reduce=True,
    tma_reduce=True,
    tma_multicast=True,
    tma_gather4=True,
    tensormap_replace=True,
    cluster=True,
    dsmem=True,
    cluster_launch_control=True,
    pdl=True,
    elect_sync=True,
    redux_int=True,
    redux_f32=True,
    red_vector_f32=True,
    atomic_bf16x2=True,
    global_256bit=True,
    bf16x2_fma=True,
    bf16x2_add=True,
    bf16x2_transcendental=True,
    f32x2=True,
    max3_f32=True,
    fp8_convert=True,
    fp4_convert=True,
    stochastic_rounding=True,
    tcgen05_ld_red=True,
    tma=TmaLimits(
        element_types=fact(
            (
                *("e2m1", "u8", "i8", "e4m3", "e5m2", "bf16", "f16"),
                *("f32", "tf32", "i32", "u32", "f64", "i64"),
            ),
            ptx("Tensors, element types: 8-bit types travel as .u8, e2m1 as .b4x16"),
        )
    ),
    setmaxnreg=SetmaxnregLimits(),
    tmem=TmemLimits(),
    mma_sync=(
        *FLOAT16_MMA,
        *TF32_MMA,
        *float8_mma(native=False),
        *f8f6f4_mma(FLOAT8, native=False),
        *INT8_MMA,
        *F64_MMA,
        *f64_wide_mma(native=False),
        *b1_mma(native_and=False, native_xor=False),
    ),
    tcgen05=(*TCGEN05, *TCGEN05_K96),
    rates=Rates(
        tensor=fact(
            (
                TensorRate(dtype="bf16", acc="f32", fma=4096),
                TensorRate(dtype="f16", acc="f32", fma=4096),
                TensorRate(dtype="f16", acc="f16", fma=4096),
                TensorRate(dtype="tf32", acc="f32", fma=2048),
                TensorRate(dtype="e4m3", acc="f32", fma=8192),
                TensorRate(dtype="e5m2", acc="f32", fma=8192),
                TensorRate(dtype="e2m1", acc="f32", fma=24576),
            ),
            from_tflops(HGX_BRIEF, "1.856 GHz, e2m1 with block scales and k = 96"),
        ),
        fp32_lanes=fact(128, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(32, _SFU),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(72, _L2),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="B300 SXM6",
            sms=fact(148, device("B300")),
            l2=fact(126 * MIB, device("B300")),
            dram=fact(7.7e12, HGX_BRIEF),
            clock=fact(1.856e9, _CLOCK),
            bf16_tensor=fact(2.25e15, HGX_BRIEF),
        ),
    ),
)
