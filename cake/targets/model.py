"""The target: every figure and instruction form of one architecture, and the look-ups."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from cake.targets.citations import CC_TABLE, OCCUPANCY, ptx
from cake.targets.cited import Cited, Unit
from cake.targets.forms import BlockScaledForm, MmaForm, Tcgen05Form, WgmmaForm
from cake.targets.limits import (
    KIB,
    Bytes,
    Count,
    Counts,
    Flag,
    MbarrierLimits,
    Registers,
    SetmaxnregLimits,
    TmaLimits,
    TmemLimits,
)
from cake.targets.rates import Part, Rates


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities(Cited):
    """Which instructions the target has. Each field's source is the manual's section."""

    cp_async: Annotated[Flag, ptx("cp.async")] = False
    ldmatrix: Annotated[Flag, ptx("ldmatrix")] = False
    ldmatrix_b8: Annotated[Flag, ptx("ldmatrix, .m16n16 with .b8")] = False
    stmatrix: Annotated[Flag, ptx("stmatrix")] = False
    stmatrix_b8: Annotated[Flag, ptx("stmatrix, .m16n8 with .b8")] = False
    mbarrier_tx: Annotated[Flag, ptx("mbarrier.expect_tx, mbarrier.try_wait")] = False
    bulk_copy: Annotated[Flag, ptx("cp.async.bulk")] = False
    bulk_reduce: Annotated[Flag, ptx("cp.reduce.async.bulk")] = False
    tma_reduce: Annotated[Flag, ptx("cp.reduce.async.bulk.tensor")] = False
    tma_multicast: Annotated[
        Flag, ptx("cp.async.bulk.tensor, .multicast::cluster: fast only on the targets named")
    ] = False
    tma_gather4: Annotated[Flag, ptx("cp.async.bulk.tensor, .tile::gather4")] = False
    tensormap_replace: Annotated[Flag, ptx("tensormap.replace")] = False
    cluster: Annotated[Flag, ptx("barrier.cluster")] = False
    dsmem: Annotated[Flag, ptx("mapa, ld.shared::cluster, st.async")] = False
    cluster_launch_control: Annotated[Flag, ptx("clusterlaunchcontrol.try_cancel")] = False
    pdl: Annotated[Flag, ptx("griddepcontrol")] = False
    elect_sync: Annotated[Flag, ptx("elect.sync")] = False
    redux_int: Annotated[Flag, ptx("redux.sync, 32-bit integers")] = False
    redux_f32: Annotated[Flag, ptx("redux.sync, .f32")] = False
    red_vector_f32: Annotated[Flag, ptx("red, .v2 and .v4 with .f32")] = False
    atomic_bf16x2: Annotated[Flag, ptx("atom and red, .bf16x2")] = False
    global_256bit: Annotated[Flag, ptx("ld and st, .v8 with .b32")] = False
    bf16x2_fma: Annotated[Flag, ptx("fma and max, .bf16x2")] = False
    bf16x2_add: Annotated[Flag, ptx("add, sub and mul, .bf16x2")] = False
    bf16x2_transcendental: Annotated[Flag, ptx("ex2 and tanh, .bf16x2")] = False
    f32x2: Annotated[Flag, ptx("add, mul and fma, .f32x2")] = False
    max3_f32: Annotated[Flag, ptx("min and max, .f32 with three inputs")] = False
    fp8_convert: Annotated[Flag, ptx("cvt, .e4m3x2 and .e5m2x2")] = False
    fp4_convert: Annotated[Flag, ptx("cvt, .e2m1x2")] = False
    stochastic_rounding: Annotated[Flag, ptx("cvt, .rs")] = False
    tcgen05_ld_red: Annotated[Flag, ptx("tcgen05.ld.red")] = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Target(Capabilities):
    """One exact compilation target with its figures; ``source(name)`` says where each is from.

    Sections that a target lacks are None (``tma``, ``setmaxnreg``, ``tmem``), and its forms are
    empty, so that every capability can be tested for truth.
    """

    name: str
    capability: tuple[int, int]
    nvrtc_arch: str

    smem_per_sm: Bytes
    smem_per_cta: Bytes
    """Dynamic shared memory after opting in with ``MAX_DYNAMIC_SHARED_SIZE_BYTES``."""
    smem_static_limit: Bytes
    """Static shared memory; ptxas grants more than 48 KiB only to suffixed targets."""
    smem_reserved_per_cta: Annotated[Bytes, CC_TABLE] = 1 * KIB
    """What the system takes per CTA, on top of the CTA's own, out of ``smem_per_sm``."""
    smem_unit: Annotated[Bytes, OCCUPANCY] = 128
    """Shared memory is allocated in multiples of this."""
    smem_banks: Annotated[Count, CC_TABLE] = 32

    registers_per_sm: Annotated[Registers, CC_TABLE] = 64 * KIB
    registers_per_thread_max: Annotated[Registers, CC_TABLE] = 255
    register_unit: Annotated[Registers, OCCUPANCY] = 256
    """Registers are allocated per warp in multiples of this: 8 per thread."""

    warp_size: Annotated[Count, CC_TABLE] = 32
    threads_per_cta: Annotated[Count, CC_TABLE] = 1024
    warps_per_sm: Count
    ctas_per_sm: Count
    named_barriers: Annotated[Count, ptx("barrier")] = 16
    grid_max: Annotated[Counts, CC_TABLE] = (2**31 - 1, 65535, 65535)
    """Most CTAs along x, y and z."""
    block_max: Annotated[Counts, CC_TABLE] = (1024, 1024, 64)
    """Most threads along x, y and z."""
    cluster_max_portable: Count
    cluster_max_nonportable: Count

    cp_async_sizes: Annotated[Counts, ptx("cp.async: .ca; .cg takes only 16")] = (4, 8, 16)
    """Bytes that one ``cp.async`` moves; both addresses are aligned to the size."""
    bulk_unit: Annotated[Bytes, ptx("cp.async.bulk: size and both addresses")] = 16

    mbarrier: MbarrierLimits = field(default_factory=MbarrierLimits)
    tma: TmaLimits | None = None
    setmaxnreg: SetmaxnregLimits | None = None
    tmem: TmemLimits | None = None

    mma_sync: Annotated[tuple[MmaForm, ...], Unit(), ptx("mma")] = ()
    block_scaled_mma: Annotated[tuple[BlockScaledForm, ...], Unit(), ptx("mma, .block_scale")] = ()
    wgmma: Annotated[tuple[WgmmaForm, ...], Unit(), ptx("wgmma.mma_async")] = ()
    tcgen05: Annotated[tuple[Tcgen05Form, ...], Unit(), ptx("tcgen05.mma")] = ()

    rates: Rates
    parts: tuple[Part, ...]

    @property
    def part(self) -> Part:
        """The typical device, whose tensor rates ``rates`` gives."""
        return self.parts[0]

    def mma_form(
        self, a: str, b: str, acc: str, shape: tuple[int, int, int] | None = None
    ) -> MmaForm | None:
        """The ``mma.sync`` form for these types; without a shape, native before large k.

        None if there is none; ``mma_sync`` lists what is admitted.
        """
        for form in self.mma_sync:
            fits = shape is None or shape == (form.m, form.n, form.k)
            if fits and (form.a, form.b, form.acc) == (a, b, acc):
                return form
        return None

    def block_scaled_form(self, kind: str, a: str, b: str, scale: str) -> BlockScaledForm | None:
        """The block-scaled ``mma.sync`` form; None if absent, ``block_scaled_mma`` lists them."""
        for form in self.block_scaled_mma:
            if (form.kind, form.a, form.b, form.scale) == (kind, a, b, scale):
                return form
        return None

    def wgmma_form(self, a: str, b: str, acc: str, n: int) -> WgmmaForm | None:
        """The ``wgmma`` form for these types that admits ``n``; None if absent.

        ``wgmma`` lists what is admitted, each form with its ``n_values``.
        """
        for form in self.wgmma:
            if (form.a, form.b, form.acc) == (a, b, acc) and n in form.n_values:
                return form
        return None

    def tcgen05_form(
        self, a: str, b: str, acc: str, *, m: int, n: int, cta_group: int, kind: str | None = None
    ) -> Tcgen05Form | None:
        """The ``tcgen05.mma`` form for these types and this shape; None if absent.

        Without ``kind`` only unscaled kinds are considered. ``tcgen05`` lists what is admitted.
        """
        for form in self.tcgen05:
            wanted = not form.scales if kind is None else form.kind == kind
            types = a in form.a and b in form.b and acc in form.acc
            shape = (form.m, form.cta_group) == (m, cta_group) and n in form.n_values
            if wanted and types and shape:
                return form
        return None
