"""How fast: rates per clock of one SM, and the devices that carry them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cake.targets.cited import Cited, Unit
from cake.targets.limits import Bytes, BytesPerClock, BytesPerSecond, Count, Flops, Hertz, PerClock


@dataclass(frozen=True, slots=True, kw_only=True)
class TensorRate:
    """Dense tensor products: ``fma`` multiply-adds per clock and SM for a type and accumulator."""

    dtype: str
    acc: str
    fma: int

    def __str__(self) -> str:
        return f"{self.dtype} -> {self.acc}: {self.fma}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates(Cited):
    """Work per clock of one SM, at best.

    Tensor rates are those of the target's first part, by its fastest path (``mma.sync``, ``wgmma``
    or ``tcgen05``); ``mma.sync`` alone does not reach them on sm_90a, sm_100a and sm_103a.
    ``alu_lanes`` counts results of 32-bit compare, select, shift, logic and min/max. Without a
    public figure, ``l2_bytes`` is None: no estimate should rest on it.
    """

    tensor: Annotated[tuple[TensorRate, ...], Unit("FMA per clock and SM")]
    fp32_lanes: PerClock
    alu_lanes: PerClock
    sfu_lanes: PerClock
    smem_bytes: BytesPerClock
    l2_bytes: Annotated[int | None, Unit("bytes per clock and SM")]
    issue_slots: PerClock

    def tensor_fma(self, dtype: str, acc: str) -> int | None:
        """Dense multiply-adds per clock and SM, or None where no rate is known."""
        return next((r.fma for r in self.tensor if (r.dtype, r.acc) == (dtype, acc)), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Ceilings(Cited):
    """What one device was measured to do; the sheet's figures are out of reach."""

    bf16_gemm: Flops
    copy: BytesPerSecond
    clock_low: Hertz
    clock_high: Hertz


@dataclass(frozen=True, slots=True, kw_only=True)
class Part(Cited):
    """A device of the architecture, by its sheet; ``measured`` where we have run on one.

    ``clock`` is the boost clock that the sheet's dense bf16 rate ``bf16_tensor`` is stated at.
    """

    name: str
    sms: Count
    l2: Bytes
    dram: BytesPerSecond
    clock: Hertz
    bf16_tensor: Flops
    measured: Ceilings | None = None
