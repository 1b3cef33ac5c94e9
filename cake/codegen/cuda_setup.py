"""Before the roles and after them: mbarriers, tensor maps, earlier kernels, the cluster's exit."""

from __future__ import annotations

from collections.abc import Iterator

from cake.codegen.cuda_emitter import CudaEmitter
from cake.codegen.cuda_state import KernelState
from cake.codegen.cuda_writer import Writer
from cake.ir.nodes import walk_calls
from cake.ir.program import Barrier, LaunchOptions, Pipeline, Program
from cake.ops.layout import MBARRIER_BYTES
from cake.ops.raster import cluster_size
from cake.ops.rings import ring_facts
from cake.targets import get

_SYNC_CLUSTER = """\
__device__ __forceinline__ void sync_cluster() {
  asm volatile(
      "barrier.cluster.arrive.release.aligned;\\n"
      "barrier.cluster.wait.acquire.aligned;\\n" ::: "memory");
}"""
_MBAR_INIT = """\
__device__ __forceinline__ void mbar_init(unsigned bar, unsigned count) {
  asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}"""
_PREFETCH_MAP = """\
__device__ __forceinline__ void prefetch_map(const void* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}"""
_FENCE_INIT = 'asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");'
_WAIT_LAUNCH = 'asm volatile("griddepcontrol.wait;" ::: "memory");'


def set_up(kernel: KernelState, writer: Writer) -> None:
    """Barriers and tensor maps, before anybody uses them."""
    program = kernel.program
    cg = CudaEmitter(kernel, writer)
    barriers = list(_barriers(kernel))
    if barriers or kernel.maps:
        with writer.block("if (threadIdx.x == 0)"):
            for name in kernel.maps.values():
                writer.line(f"{cg.helper('prefetch_map', _PREFETCH_MAP)}(&{name});")
            for name, slots, count in barriers:
                _init(cg, name, slots, count)
            if barriers and get(program.target).cluster:
                writer.line(_FENCE_INIT)
    if cluster_size(program) > 1:
        _sync_cluster(kernel, writer)
    elif barriers:
        writer.line("__syncthreads();")
    if any(o.pdl for o in program.find(LaunchOptions)) and not _waits_itself(program):
        writer.line(_WAIT_LAUNCH)


def leave(kernel: KernelState, writer: Writer) -> None:
    """No CTA ends while its shared memory may be reached from another one."""
    if cluster_size(kernel.program) > 1:
        writer.comment("No CTA leaves while its shared memory may be reached from another one.")
        writer.line("__syncwarp();")
        _sync_cluster(kernel, writer)


def _sync_cluster(kernel: KernelState, writer: Writer) -> None:
    writer.line(f"{kernel.helper('sync_cluster', _SYNC_CLUSTER)}();")


def _waits_itself(program: Program) -> bool:
    """Whether the schedule says where it waits for the kernels before it."""
    return any(call.op == "pdl_wait" for role in program.roles for call in walk_calls(role.body))


def _barriers(kernel: KernelState) -> Iterator[tuple[str, int, int]]:
    """Name, slots and arrival count of every group of mbarriers."""
    program = kernel.program
    for ring in program.find(Pipeline):
        facts = ring_facts(program, ring.name)
        yield f"{ring.name}_full", ring.stages, facts.full_count
        yield f"{ring.name}_empty", ring.stages, facts.empty_count
    for barrier in program.find(Barrier):
        yield barrier.name, barrier.slots, barrier.arrivals


def _init(cg: CudaEmitter, name: str, slots: int, count: int) -> None:
    init = cg.helper("mbar_init", _MBAR_INIT)
    base = f"smem + {cg.kernel.offsets[name]}"
    if slots == 1:
        cg.line(f"{init}({base}, {count});")
        return
    with cg.unrolled(slots):
        cg.line(f"{init}({base} + i * {MBARRIER_BYTES}, {count});")
