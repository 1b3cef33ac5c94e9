"""mbarrier instructions as ``__device__`` helpers (PTX ISA, "mbarrier").

Each function registers what it needs and returns one C++ statement without its line end.
"""

from __future__ import annotations

from cake.ops.emit import Emitter


def has_try_wait(target: str) -> bool:
    """try_wait, transaction counts and arrival counts came with sm_90."""
    return not target.startswith("sm_8")


def wait(cg: Emitter, bar: str, parity: str, *, cluster: bool = False) -> str:
    """Block until the phase of ``parity`` is complete.

    ``cluster``: acquire what other CTAs of the cluster released on the barrier.
    """
    op = "try_wait" if has_try_wait(cg.target) else "test_wait"
    scope = ".acquire.cluster" if cluster else ""
    name = "mbar_wait_cluster" if cluster else "mbar_wait"
    code = f"""\
__device__ __forceinline__ void {name}(unsigned bar, unsigned parity) {{
  asm volatile(
      "{{\\n"
      ".reg .pred done;\\n"
      "WAIT:\\n"
      "mbarrier.{op}.parity{scope}.shared::cta.b64 done, [%0], %1;\\n"
      "@!done bra WAIT;\\n"
      "}}\\n" ::"r"(bar), "r"(parity) : "memory");
}}"""
    if not has_try_wait(cg.target):
        code = code.replace(".shared::cta", ".shared")
    return f"{cg.helper(name, code)}({bar}, {parity});"


def arrive(cg: Emitter, bar: str, count: int = 1) -> str:
    """``count`` arrivals by one thread; releases its earlier accesses to the CTA."""
    if not has_try_wait(cg.target):
        code = """\
__device__ __forceinline__ void mbar_arrive(unsigned bar) {
  asm volatile(
      "{\\n"
      ".reg .b64 state;\\n"
      "mbarrier.arrive.shared.b64 state, [%0];\\n"
      "}\\n" ::"r"(bar) : "memory");
}"""
        assert count == 1
        return f"{cg.helper('mbar_arrive', code)}({bar});"
    if count == 1:
        code = """\
__device__ __forceinline__ void mbar_arrive(unsigned bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}"""
        return f"{cg.helper('mbar_arrive', code)}({bar});"
    code = """\
__device__ __forceinline__ void mbar_arrive_n(unsigned bar, unsigned count) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(count) : "memory");
}"""
    return f"{cg.helper('mbar_arrive_n', code)}({bar}, {count});"


def arrive_remote(cg: Emitter, bar: str, rank: str, count: int = 1) -> str:
    """``count`` arrivals on the same barrier of CTA ``rank`` of the cluster."""
    code = """\
__device__ __forceinline__ void mbar_arrive_remote(unsigned bar, unsigned rank, unsigned count) {
  asm volatile(
      "{\\n"
      ".reg .b32 remote;\\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote], %2;\\n"
      "}\\n" ::"r"(bar), "r"(rank), "r"(count) : "memory");
}"""
    return f"{cg.helper('mbar_arrive_remote', code)}({bar}, {rank}, {count});"


def address_in(cg: Emitter, bar: str, rank: str) -> str:
    """The address of the same barrier of CTA ``rank`` in the cluster's window (mapa)."""
    code = """\
__device__ __forceinline__ unsigned mbar_in(unsigned bar, unsigned rank) {
  unsigned there;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(bar), "r"(rank));
  return there;
}"""
    return f"{cg.helper('mbar_in', code)}({bar}, {rank})"


def expect_tx(cg: Emitter, bar: str, tx: str, rank: str | None = None) -> str:
    """``tx`` more bytes are expected in the phase, of CTA ``rank``'s barrier; no arrival."""
    if rank is not None:
        code = """\
__device__ __forceinline__ void mbar_expect_tx_remote(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
               ::"r"(bar), "r"(bytes) : "memory");
}"""
        name = cg.helper("mbar_expect_tx_remote", code)
        return f"{name}({address_in(cg, bar, rank)}, {tx});"
    code = """\
__device__ __forceinline__ void mbar_expect_tx(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;"
               ::"r"(bar), "r"(bytes) : "memory");
}"""
    return f"{cg.helper('mbar_expect_tx', code)}({bar}, {tx});"


def arrive_expect_tx(cg: Emitter, bar: str, tx: str, rank: str | None = None) -> str:
    """One arrival that first announces ``tx`` bytes, on CTA ``rank``'s barrier."""
    if rank is not None:
        code = """\
__device__ __forceinline__ void mbar_arrive_expect_tx_remote(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.release.cluster.shared::cluster.b64 _, [%0], %1;"
               ::"r"(bar), "r"(bytes) : "memory");
}"""
        name = cg.helper("mbar_arrive_expect_tx_remote", code)
        return f"{name}({address_in(cg, bar, rank)}, {tx});"
    code = """\
__device__ __forceinline__ void mbar_arrive_expect_tx(unsigned bar, unsigned bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;"
               ::"r"(bar), "r"(bytes) : "memory");
}"""
    return f"{cg.helper('mbar_arrive_expect_tx', code)}({bar}, {tx});"


def arrive_after_cp_async(cg: Emitter, bar: str) -> str:
    """One arrival by this thread once all its earlier cp.async are done; counted in the init."""
    space = ".shared::cta" if has_try_wait(cg.target) else ".shared"
    code = f"""\
__device__ __forceinline__ void mbar_arrive_after_cp_async(unsigned bar) {{
  asm volatile("cp.async.mbarrier.arrive.noinc{space}.b64 [%0];" ::"r"(bar) : "memory");
}}"""
    return f"{cg.helper('mbar_arrive_after_cp_async', code)}({bar});"
