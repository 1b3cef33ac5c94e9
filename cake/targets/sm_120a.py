"""sm_120a: Blackwell GB20x, GeForce RTX 50, RTX PRO 6000.

Tensor rates are GeForce's, which halve f32 accumulation. TMA multicast assembles with a warning
of poor performance and is therefore not listed.
"""

from __future__ import annotations

from cake.targets.citations import (
    BANKS,
    CC_TABLE,
    CLUSTERS,
    GB202_PAPER,
    PTXAS,
    SCHEDULERS,
    THROUGHPUT,
    from_tflops,
    ptx,
)
from cake.targets.cited import Source, fact
from cake.targets.limits import KIB, SetmaxnregLimits, TmaLimits
from cake.targets.mma_forms import (
    BLOCK_SCALED_MMA,
    F64_MMA,
    FLOAT16_MMA,
    INT8_MMA,
    SMALL_FLOATS,
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
    "Chips and Cheese, Blackwell: Nvidia's Massive GPU (2025): 8.7 TB/s of L2 reads over the "
    "188 SMs of an RTX PRO 6000 at 2.6 GHz",
)
_NO_LARGER = Source("derived", "no cluster larger than the portable one is documented for 12.x")

TARGET = Target(
    name="sm_120a",
    capability=(12, 0),
    nvrtc_arch="sm_120a",
    smem_per_sm=fact(100 * KIB, CC_TABLE),
    smem_per_cta=fact(99 * KIB, CC_TABLE),
    smem_static_limit=fact(99 * KIB, PTXAS),
    warps_per_sm=fact(48, CC_TABLE),
    ctas_per_sm=fact(24, CC_TABLE),
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
    tma_gather4=True,
    tensormap_replace=True,
    cluster=True,
    dsmem=True,
    cluster_launch_control=True,
    pdl=True,
    elect_sync=True,
    redux_int=True,
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
    mma_sync=(
        *FLOAT16_MMA,
        *TF32_MMA,
        *float8_mma(native=True),
        *f8f6f4_mma(SMALL_FLOATS, native=True),
        *INT8_MMA,
        *F64_MMA,
        *f64_wide_mma(native=False),
        *b1_mma(native_and=False, native_xor=False),
    ),
    block_scaled_mma=BLOCK_SCALED_MMA,
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
                TensorRate(dtype="e2m1", acc="f32", fma=2048),
                TensorRate(dtype="i8", acc="i32", fma=1024),
                TensorRate(dtype="u8", acc="i32", fma=1024),
            ),
            from_tflops(GB202_PAPER, "2.407 GHz, e2m1 with block scales"),
        ),
        fp32_lanes=fact(128, THROUGHPUT),
        alu_lanes=fact(64, THROUGHPUT),
        sfu_lanes=fact(16, THROUGHPUT),
        smem_bytes=fact(128, BANKS),
        l2_bytes=fact(17, _L2),
        issue_slots=fact(4, SCHEDULERS),
    ),
    parts=(
        Part(
            name="GeForce RTX 5090",
            sms=fact(170, GB202_PAPER),
            l2=fact(98304 * KIB, GB202_PAPER),
            dram=fact(1.792e12, GB202_PAPER),
            clock=fact(2.407e9, GB202_PAPER),
            bf16_tensor=fact(209.5e12, GB202_PAPER),
        ),
    ),
)
