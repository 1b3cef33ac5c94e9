"""Interfaces and sources that several tests of this folder share."""

from cake.codegen.abi import (
    DimArg,
    Guard,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    StrideArg,
    TensorMapArg,
    TensorSpec,
    Workspace,
    WorkspaceArg,
)

TARGETS = ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")

GEMM_MAP = TensorMapArg(
    tensor="a", box=(128, 64), axes=(1, 2), dims=("B * M", "K"), swizzle=128, dtype="bf16"
)

GEMM = KernelAbi(
    name="gemm",
    target="sm_90a",
    tensors=(
        TensorSpec(name="a", dtype="bf16", shape=("B", "M", "K"), writable=False, align=16),
        TensorSpec(name="b", dtype="bf16", shape=("K", 256), writable=False, align=16),
        TensorSpec(name="c", dtype="f32", shape=("B", "M", 256), writable=True, align=16),
    ),
    scalars=(ScalarSpec(name="alpha", dtype="f32"), ScalarSpec(name="split", dtype="i32")),
    args=(
        GEMM_MAP,
        PointerArg(tensor="b"),
        PointerArg(tensor="c"),
        StrideArg(tensor="c", axis=1),
        DimArg(symbol="M", dtype="i64"),
        ScalarArg(name="alpha"),
        ScalarArg(name="split"),
        WorkspaceArg(name="tickets"),
    ),
    workspaces=(Workspace(name="tickets", bytes="4 * cdiv(M, 128)", zeroed=True),),
    guards=(
        Guard(
            text="K % 64 == 0",
            message="K must be a multiple of 64",
            file="gemm.py",
            line=9,
            col=5,
            end_line=9,
            end_col=25,
        ),
    ),
    grid=("min(cdiv(B * M, 128), device_sms)", "split", "1"),
    cluster=(2, 1, 1),
    block=384,
    smem_bytes=196608,
    pdl=True,
    min_blocks=1,
)

# The first line of a kernel's body stands at line 40 of schedule.py.
AUTHOR = '\n#line 40 "schedule.py"\n'

ADD_ONE = f"""
#include <cuda_bf16.h>
extern "C" __global__ void __launch_bounds__(128)
add_one(float* x, const __nv_bfloat16* y, int n) {{{AUTHOR}
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) x[i] = __bfloat162float(y[i]) + 1.0f;
}}
"""

# 64 live values in the 32 registers that two blocks of 1024 threads leave.
SPILLING = f"""
extern "C" __global__ void __launch_bounds__(1024, 2) spilling(float* x, int n) {{
    float v[64];
    #pragma unroll
    for (int i = 0; i < 64; i++) v[i] = x[i * 32 + threadIdx.x];{AUTHOR}
    for (int k = 0; k < n; k++) {{ _Pragma("unroll") for (int i = 0; i < 64; i++) {{
        v[i] = v[i] * v[(i * 7 + 1) % 64] + v[(i + 13) % 64]; }} }}
    #pragma unroll
    for (int i = 0; i < 64; i++) x[i * 32 + threadIdx.x] = v[i];
}}
"""

# setmaxnreg without the minimum of blocks per SM that tells ptxas the registers at entry.
UNBOUNDED_SETMAXNREG = f"""
extern "C" __global__ void __launch_bounds__(384) unbounded(float* x) {{{AUTHOR}
    asm volatile("setmaxnreg.inc.sync.aligned.u32 160;");
    x[threadIdx.x] = 1;
}}
"""

FENCE = 'asm volatile("wgmma.fence.sync.aligned;" ::: "memory");'
COMMIT = 'asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");'
WAIT = 'asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");'


def wgmma_kernel(body: str, *, threads: int = 128, n: int = 64) -> str:
    """A kernel around one wgmma m64n``n``k16; ``WGMMA`` in ``body`` stands for the instruction."""
    count = n // 2
    registers = ", ".join(f"%{i}" for i in range(count))
    operands = ", ".join(f'"+f"(d[{i}])' for i in range(count))
    wgmma = (
        f'asm volatile("wgmma.mma_async.sync.aligned.m64n{n}k16.f32.bf16.bf16 {{{registers}}}, '
        f'%{count}, %{count + 1}, 1, 1, 1, 0, 0;" : {operands} : "l"(da), "l"(db));'
    )
    return f"""
extern "C" __global__ void __launch_bounds__({threads}, 1)
multiply(float* x, unsigned long long da, unsigned long long db, int n) {{
    float d[{count}] = {{}};{AUTHOR}{body.replace("WGMMA", wgmma)}
    for (int i = 0; i < {count}; i++) x[threadIdx.x * {count} + i] = d[i];
}}
"""
