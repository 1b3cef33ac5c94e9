"""What one device can do, in the units that work is counted in.

Rates come from :mod:`cake.targets`. Where the part has measured ceilings, tensor rate and memory
bandwidth are those; else they are the data sheet's, which no kernel reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

from cake.targets import get
from cake.targets.model import Target
from cake.targets.rates import Part

LAUNCH_SECONDS = 2e-6
"""From the end of a kernel to the first instruction of the next one in a stream. Typical of
current devices, not calibrated."""

MEMORY_LATENCY = 479
"""Clocks from a global load to its value (arXiv 2402.13499, table IV, H800 PCIe, cold)."""

MMA_SYNC_SHARE = 0.629
"""Share of the peak tensor rate that ``mma.sync`` reaches on average where the target has an
asynchronous tensor instruction as well (arXiv 2402.13499, on an H800 PCIe)."""


L2_REACHED = {"H200 SXM": 9.37e12}
"""Bytes a second from L2 to the SMs that a kernel was seen to move on a part. Requests of several
SMs for one line are merged on their way, so kernels that share operands exceed the rate of a copy
benchmark. H200: the GEMM of docs/perf/gemm.md, 13.0 GB for the 8192 cube in 1.39 ms."""


class UnknownPart(ValueError):
    """The target has no such part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """Rates of one device: per clock and SM, in bytes a second for device memory.

    ``tensor_share`` is what a large product reaches of the peak tensor rate. ``calibrated`` says
    that ``tensor_share`` and ``dram`` were measured on this part.
    """

    target: Target
    part: Part
    clock: float
    dram: float
    tensor_share: float
    calibrated: bool

    @property
    def sms(self) -> int:
        return self.part.sms

    @property
    def l2_bytes(self) -> float | None:
        """Bytes per clock and SM between L2 and the SMs; None where no rate is known."""
        reached = L2_REACHED.get(self.part.name, 0.0) / (self.sms * self.clock)
        return max(self.target.rates.l2_bytes or 0.0, reached) or None

    def tensor_fma(self, dtype: str, op: str) -> float | None:
        """Multiply-adds per clock and SM of primitive ``op``; None where no rate is known."""
        acc = {"i8": "i32", "u8": "i32", "f64": "f64"}.get(dtype, "f32")
        peak = self.target.rates.tensor_fma(dtype, acc)
        if peak is None:
            return None
        newer = bool(self.target.wgmma or self.target.tcgen05)
        return peak * (MMA_SYNC_SHARE if op == "mma" and newer else self.tensor_share)


def machine(target: str, part: str | None = None) -> Machine:
    """The rates of a part of ``target``; without a name, of its typical one.

    Raises :class:`cake.targets.UnknownTarget` and :class:`UnknownPart`.
    """
    facts = get(target)
    chosen = next((p for p in facts.parts if part in (None, p.name)), None)
    if chosen is None:
        known = ", ".join(p.name for p in facts.parts)
        raise UnknownPart(f"{target} has no part {part!r}; known parts: {known}")
    ceilings = chosen.measured
    return Machine(
        target=facts,
        part=chosen,
        clock=chosen.clock,
        dram=chosen.dram if ceilings is None else ceilings.copy,
        tensor_share=1.0 if ceilings is None else ceilings.bf16_gemm / chosen.bf16_tensor,
        calibrated=ceilings is not None,
    )
