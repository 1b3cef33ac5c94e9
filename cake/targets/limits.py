"""Units of the figures, and the limits of single engines: TMA, mbarriers, registers, TMEM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from cake.targets.citations import TENSOR_MAP, ptx
from cake.targets.cited import Cited, Unit

KIB = 1024
MIB = 1024 * KIB

Flag = Annotated[bool, Unit()]
Count = Annotated[int, Unit()]
Counts = Annotated[tuple[int, ...], Unit()]
Bytes = Annotated[int, Unit("bytes")]
Registers = Annotated[int, Unit("registers")]
PerClock = Annotated[int, Unit("per clock and SM")]
BytesPerClock = Annotated[int, Unit("bytes per clock and SM")]
Hertz = Annotated[float, Unit("Hz")]
Flops = Annotated[float, Unit("FLOP/s")]
BytesPerSecond = Annotated[float, Unit("B/s")]


@dataclass(frozen=True, slots=True, kw_only=True)
class Swizzle:
    """A shared-memory swizzle: 16-byte chunks permuted by XOR within rows of ``span`` bytes.

    ``span`` is 0 (none), 32, 64 or 128. A swizzled box is at most ``span`` bytes wide; its tile
    starts on a multiple of ``alignment`` bytes, the period of the pattern.
    """

    span: int
    alignment: int

    def __str__(self) -> str:
        return f"{self.span}B" if self.span else "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class TmaLimits(Cited):
    """Limits of tiled tensor maps without interleave; the same wherever there is a TMA unit.

    Byte limits follow the element type: a box is at most ``box_dim_max`` elements per dimension,
    its innermost extent a multiple of ``box_inner_unit`` bytes. Strides of the outer dimensions
    are multiples of ``stride_unit`` bytes and below ``stride_limit``.
    """

    rank_max: Annotated[Count, TENSOR_MAP] = 5
    box_dim_max: Annotated[Count, TENSOR_MAP] = 256
    box_inner_unit: Annotated[Bytes, TENSOR_MAP] = 16
    global_dim_max: Annotated[Count, TENSOR_MAP] = 2**32
    stride_unit: Annotated[Bytes, TENSOR_MAP] = 16
    stride_limit: Annotated[Bytes, TENSOR_MAP] = 2**40
    element_stride_max: Annotated[Count, TENSOR_MAP] = 8
    global_alignment: Annotated[Bytes, TENSOR_MAP] = 16
    smem_alignment: Annotated[Bytes, ptx("cp.async.bulk.tensor")] = 128
    map_bytes: Annotated[Bytes, TENSOR_MAP] = 128
    map_alignment: Annotated[Bytes, TENSOR_MAP] = 64
    swizzles: Annotated[tuple[Swizzle, ...], Unit(), ptx("Tensors, swizzling modes")] = (
        Swizzle(span=0, alignment=128),
        Swizzle(span=32, alignment=256),
        Swizzle(span=64, alignment=512),
        Swizzle(span=128, alignment=1024),
    )
    element_types: Annotated[tuple[str, ...], Unit()]
    reductions: Annotated[tuple[str, ...], Unit(), ptx("cp.reduce.async.bulk.tensor")] = (
        *("add", "min", "max", "inc", "dec"),
        *("and", "or", "xor"),
    )

    def swizzle(self, span: int) -> Swizzle | None:
        """The swizzle of ``span`` bytes (0 for none), or None if there is none such."""
        return next((s for s in self.swizzles if s.span == span), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class MbarrierLimits(Cited):
    """Limits of an mbarrier; ``tx_count_max`` means something only with ``mbarrier_tx``."""

    count_max: Annotated[Count, ptx("mbarrier, contents")] = 2**20 - 1
    tx_count_max: Annotated[Count, ptx("mbarrier, contents")] = 2**20 - 1
    size: Annotated[Bytes, ptx("mbarrier, size and alignment")] = 8
    alignment: Annotated[Bytes, ptx("mbarrier, size and alignment")] = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class SetmaxnregLimits(Cited):
    """Register counts that ``setmaxnreg`` takes: ``low`` to ``high`` in steps of ``step``."""

    low: Annotated[Registers, ptx("setmaxnreg")] = 24
    high: Annotated[Registers, ptx("setmaxnreg")] = 256
    step: Annotated[Registers, ptx("setmaxnreg")] = 8

    def admits(self, registers: int) -> bool:
        """Whether ``setmaxnreg`` takes this count."""
        return self.low <= registers <= self.high and registers % self.step == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class TmemLimits(Cited):
    """Tensor memory of one SM: ``lanes`` rows of ``columns`` 32-bit cells.

    An allocation is a power of two of columns, at least ``alloc_min``.
    """

    columns: Annotated[Count, ptx("Tensor Memory, addressing")] = 512
    lanes: Annotated[Count, ptx("Tensor Memory, addressing")] = 128
    alloc_min: Annotated[Count, ptx("tcgen05.alloc")] = 32

    def admits(self, columns: int) -> bool:
        """Whether ``tcgen05.alloc`` takes this number of columns."""
        return self.alloc_min <= columns <= self.columns and columns.bit_count() == 1
