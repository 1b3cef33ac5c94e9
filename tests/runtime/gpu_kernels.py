"""Hand-written CUDA kernels that exercise each feature of a launch, with their interfaces.

The GPU tests and benchmarks/launch_overhead.py use them.
"""

from dataclasses import dataclass

from cake.codegen.abi import (
    DimArg,
    KernelAbi,
    PointerArg,
    ScalarArg,
    ScalarSpec,
    TensorMapArg,
    TensorSpec,
    Workspace,
    WorkspaceArg,
)
from tests.runtime.fakes import simple_abi


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """A kernel: its CUDA source and its interface for sm_90a."""

    source: str
    abi: KernelAbi


def _vector(name: str, dtype: str, *, writable: bool = False, align: int = 4) -> TensorSpec:
    return TensorSpec(name=name, dtype=dtype, shape=("N",), writable=writable, align=align)


# z = alpha * x + y, element by element
AXPY = Sample(
    source="""
extern "C" __global__ void __launch_bounds__(128)
axpy(const float* x, const float* y, float* z, long long n, float alpha) {
    long long i = blockIdx.x * 128LL + threadIdx.x;
    if (i < n) z[i] = alpha * x[i] + y[i];
}
""",
    abi=simple_abi(
        name="axpy",
        tensors=(_vector("x", "f32"), _vector("y", "f32"), _vector("z", "f32", writable=True)),
        scalars=(ScalarSpec(name="alpha", dtype="f32"),),
        args=(
            PointerArg(tensor="x"),
            PointerArg(tensor="y"),
            PointerArg(tensor="z"),
            DimArg(symbol="N", dtype="i64"),
            ScalarArg(name="alpha"),
        ),
    ),
)

# y = x through TMA: one 64 x 32 box of f32 for each block, loaded and stored by one thread.
TILE_ROWS, TILE_COLUMNS = 64, 32
TMA_COPY = Sample(
    source="""
struct alignas(64) TensorMap { unsigned char bytes[128]; };

extern "C" __global__ void __launch_bounds__(32, 1)
tma_copy(const __grid_constant__ TensorMap x, const __grid_constant__ TensorMap y) {
    __shared__ alignas(1024) float tile[64 * 32];
    __shared__ alignas(8) unsigned long long barrier;
    if (threadIdx.x != 0) return;
    unsigned tile_at = (unsigned)__cvta_generic_to_shared(tile);
    unsigned barrier_at = (unsigned)__cvta_generic_to_shared(&barrier);
    int column = blockIdx.x * 32, row = blockIdx.y * 64;
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier_at) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
                 ::"r"(barrier_at), "r"(64 * 32 * 4) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
                 " [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(tile_at), "l"(&x), "r"(column), "r"(row), "r"(barrier_at) : "memory");
    unsigned done = 0;
    while (!done)
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0;"
                     " selp.u32 %0, 1, 0, p; }" : "=r"(done) : "r"(barrier_at) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group"
                 " [%0, {%1, %2}], [%3];"
                 ::"l"(&y), "r"(column), "r"(row), "r"(tile_at) : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}
""",
    abi=simple_abi(
        name="tma_copy",
        tensors=(
            TensorSpec(name="x", dtype="f32", shape=("B", "M", "N"), writable=False, align=16),
            TensorSpec(name="y", dtype="f32", shape=("B", "M", "N"), writable=True, align=16),
        ),
        args=tuple(
            TensorMapArg(
                tensor=name,
                box=(TILE_ROWS, TILE_COLUMNS),
                axes=(1, 2),
                dtype="f32",
                swizzle=128,
            )
            for name in ("x", "y")
        ),
        grid=(f"cdiv(N, {TILE_COLUMNS})", f"cdiv(B * M, {TILE_ROWS})", "1"),
        block=32,
    ),
)

# Every block takes a ticket; the last one writes how many there were and restores the zero.
TICKETS = Sample(
    source="""
extern "C" __global__ void __launch_bounds__(32)
tickets(int* out, unsigned* ticket) {
    if (threadIdx.x != 0) return;
    unsigned mine = atomicAdd(ticket, 1u);
    if (mine == gridDim.x - 1) {
        *out += (int)mine + 1;
        *ticket = 0;
    }
}
""",
    abi=simple_abi(
        name="tickets",
        tensors=(TensorSpec(name="out", dtype="i32", shape=(1,), writable=True, align=4),),
        scalars=(ScalarSpec(name="blocks", dtype="i32"),),
        args=(PointerArg(tensor="out"), WorkspaceArg(name="ticket")),
        workspaces=(Workspace(name="ticket", bytes="4", zeroed=True),),
        grid=("blocks", "1", "1"),
        block=32,
    ),
)

# Each block of a cluster writes the cluster's size; needs 100 KB of dynamic shared memory.
CLUSTERS = Sample(
    source="""
extern "C" __global__ void __launch_bounds__(128, 1) clusters(int* out) {
    extern __shared__ int memory[];
    unsigned size;
    asm("mov.u32 %0, %%cluster_nctaid.x;" : "=r"(size));
    memory[25599 - threadIdx.x] = (int)size;
    __syncthreads();
    if (threadIdx.x == 0) out[blockIdx.x] = memory[25599 - 127];
}
""",
    abi=simple_abi(
        name="clusters",
        tensors=(_vector("out", "i32", writable=True),),
        args=(PointerArg(tensor="out"),),
        grid=("N", "1", "1"),
        cluster=(4, 1, 1),
        smem_bytes=4 * 25600,
    ),
)

# x += 1 after the launch before has finished, although this one may have started already.
CHAIN = Sample(
    source="""
extern "C" __global__ void __launch_bounds__(128) chain(int* x, int n) {
    asm volatile("griddepcontrol.launch_dependents;");
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * 128 + threadIdx.x;
    if (i < n) x[i] += 1;
}
""",
    abi=simple_abi(
        name="chain",
        tensors=(_vector("x", "i32", writable=True),),
        args=(PointerArg(tensor="x"), DimArg(symbol="N", dtype="i32")),
        pdl=True,
    ),
)

SAMPLES = (AXPY, TMA_COPY, TICKETS, CLUSTERS, CHAIN)
