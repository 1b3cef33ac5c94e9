"""The tables of instruction forms, by group; each target composes the groups that it has.

Source: PTX ISA 9.0, the sections named below. Every form is put to ptxas by tests/targets, which
also checks ``native`` against the machine code.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import product

from cake.targets.forms import BlockScaledForm, MmaForm, Tcgen05Form, WgmmaForm

FLOAT8 = ("e4m3", "e5m2")
SMALL_FLOATS = ("e4m3", "e5m2", "e3m2", "e2m3", "e2m1")
INT8 = ("i8", "u8")

Shape = tuple[int, int, int]


def _mma(
    shapes: Iterable[Shape],
    types: Iterable[str],
    accs: Iterable[str],
    *,
    kind: str | None = None,
    op: str | None = None,
    native: bool = True,
) -> tuple[MmaForm, ...]:
    """Every shape with every pair of ``types`` and every accumulator."""
    return tuple(
        MmaForm(m=m, n=n, k=k, a=a, b=b, acc=acc, kind=kind, op=op, native=native)
        for (m, n, k), (a, b), acc in product(shapes, product(types, repeat=2), accs)
    )


# PTX ISA 9.0, mma. A look-up without a shape takes the first match, hence native forms before
# emulated ones, and the largest k first. m8n8k4 with f16 is left out: it is made for sm_70.
FLOAT16_MMA = (
    *_mma([(16, 8, 16), (16, 8, 8)], ["f16"], ["f32", "f16"]),
    *_mma([(16, 8, 16), (16, 8, 8)], ["bf16"], ["f32"]),
)
TF32_MMA = _mma([(16, 8, 8), (16, 8, 4)], ["tf32"], ["f32"])
INT8_MMA = _mma([(16, 8, 32), (16, 8, 16), (8, 8, 16)], INT8, ["i32"])
F64_MMA = _mma([(8, 8, 4)], ["f64"], ["f64"])


def f64_wide_mma(*, native: bool) -> tuple[MmaForm, ...]:
    """The f64 shapes of sm_90 and higher; sm_100 and higher split them into m8n8k4."""
    return _mma([(16, 8, 16), (16, 8, 8), (16, 8, 4)], ["f64"], ["f64"], native=native)


def b1_mma(*, native_and: bool, native_xor: bool) -> tuple[MmaForm, ...]:
    """Single-bit forms; later architectures emulate first xor, then both, with other products."""
    shapes = [(16, 8, 256), (16, 8, 128), (8, 8, 128)]
    return (
        *_mma(shapes, ["b1"], ["i32"], op="and", native=native_and),
        *_mma(shapes, ["b1"], ["i32"], op="xor", native=native_xor),
    )


def float8_mma(*, native: bool) -> tuple[MmaForm, ...]:
    """FP8 without a ``.kind``; where wgmma or tcgen05 do the work it becomes f16 products."""
    return _mma([(16, 8, 32), (16, 8, 16)], FLOAT8, ["f32", "f16"], native=native)


def f8f6f4_mma(types: tuple[str, ...], *, native: bool) -> tuple[MmaForm, ...]:
    """``.kind::f8f6f4``: FP8, FP6 and FP4 mixed freely, each in an 8-bit container."""
    return _mma([(16, 8, 32)], types, ["f32", "f16"], kind="f8f6f4", native=native)


# PTX ISA 9.0, mma with .block_scale: the valid kinds, scale types and scale vector sizes.
BLOCK_SCALED_MMA = (
    *(
        BlockScaledForm(kind="mxf8f6f4", k=32, a=a, b=b, scale="ue8m0", scale_vec=1)
        for a, b in product(SMALL_FLOATS, repeat=2)
    ),
    BlockScaledForm(kind="mxf4", k=64, a="e2m1", b="e2m1", scale="ue8m0", scale_vec=2),
    BlockScaledForm(kind="mxf4nvf4", k=64, a="e2m1", b="e2m1", scale="ue8m0", scale_vec=2),
    BlockScaledForm(kind="mxf4nvf4", k=64, a="e2m1", b="e2m1", scale="ue4m3", scale_vec=4),
)


def _steps(first: int, step: int) -> tuple[int, ...]:
    return tuple(range(first, 257, step))


_N8 = _steps(8, 8)
_N_INT = (8, 16, 24, *_steps(32, 16))


def _wgmma(
    k: int, types: Iterable[str], accs: Iterable[str], n_values: tuple[int, ...], mn_major: bool
) -> tuple[WgmmaForm, ...]:
    return tuple(
        WgmmaForm(k=k, a=a, b=b, acc=acc, n_values=n_values, mn_major=mn_major)
        for (a, b), acc in product(product(types, repeat=2), accs)
    )


# PTX ISA 9.0, wgmma.mma_async: k is 32 bytes of the operands; only 16-bit operands in shared
# memory may be MN-major; integer and bit forms have fewer n.
WGMMA = (
    *_wgmma(16, ["bf16"], ["f32"], _N8, mn_major=True),
    *_wgmma(16, ["f16"], ["f32", "f16"], _N8, mn_major=True),
    *_wgmma(8, ["tf32"], ["f32"], _N8, mn_major=False),
    *_wgmma(32, FLOAT8, ["f32", "f16"], _N8, mn_major=False),
    *_wgmma(32, INT8, ["i32"], _N_INT, mn_major=False),
    WgmmaForm(k=256, a="b1", b="b1", acc="i32", n_values=_N_INT, mn_major=False, op="and"),
)


def _tcgen05(
    kind: str,
    k: int,
    types: tuple[str, ...],
    accs: tuple[str, ...],
    shapes: Iterable[tuple[int, int, tuple[int, ...]]],
    *,
    mn_major: bool = True,
    scales: tuple[tuple[str, int], ...] = (),
) -> tuple[Tcgen05Form, ...]:
    return tuple(
        Tcgen05Form(
            kind=kind,
            cta_group=group,
            m=m,
            n_values=n_values,
            k=k,
            a=types,
            b=types,
            acc=accs,
            mn_major=mn_major,
            scales=scales,
        )
        for group, m, n_values in shapes
    )


# PTX ISA 9.0, tcgen05 matrix shapes, dense, without .ws. Where the CUTLASS 4 atoms ask for a
# coarser n than the manual (m128, and pairs of CTAs), the coarser one stands: ptxas cannot check
# n, because it sits in the instruction descriptor.
_PLAIN = (
    (1, 64, _N8),
    (1, 128, _steps(16, 16)),
    (2, 128, _steps(32, 32)),
    (2, 256, _steps(32, 32)),
)
_INT = ((1, 64, _N_INT), *_PLAIN[1:])
_SCALED = ((1, 128, _N8), (2, 128, _steps(16, 16)), (2, 256, _steps(16, 16)))
_K96 = ((1, 128, _steps(16, 16)), (2, 256, _steps(16, 16)))
_NV_SCALES = (("ue4m3", 16), ("ue8m0", 32))

TCGEN05 = (
    *_tcgen05("f16", 16, ("bf16",), ("f32",), _PLAIN),
    *_tcgen05("f16", 16, ("f16",), ("f32", "f16"), _PLAIN),
    *_tcgen05("tf32", 8, ("tf32",), ("f32",), _PLAIN),
    *_tcgen05("f8f6f4", 32, SMALL_FLOATS, ("f32", "f16"), _PLAIN),
    *_tcgen05("mxf8f6f4", 32, SMALL_FLOATS, ("f32",), _SCALED, scales=(("ue8m0", 32),)),
    *_tcgen05("mxf4", 64, ("e2m1",), ("f32",), _SCALED, mn_major=False, scales=(("ue8m0", 32),)),
    *_tcgen05("mxf4nvf4", 64, ("e2m1",), ("f32",), _SCALED, mn_major=False, scales=_NV_SCALES),
)
TCGEN05_I8 = _tcgen05("i8", 32, INT8, ("i32",), _INT)
TCGEN05_K96 = (
    *_tcgen05("mxf4", 96, ("e2m1",), ("f32",), _K96, mn_major=False, scales=(("ue8m0", 32),)),
    *_tcgen05("mxf4nvf4", 96, ("e2m1",), ("f32",), _K96, mn_major=False, scales=_NV_SCALES),
)
