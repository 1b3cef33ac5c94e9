"""The figures agree with one another, and all of them have a source."""

from __future__ import annotations

import dataclasses
import pickle

import pytest

from cake.targets import Target, UnknownTarget, get, names
from cake.targets.cited import Source, fact
from cake.targets.forms import BITS, spans
from cake.targets.limits import TmaLimits
from cake.targets.page import describe

TARGETS = [get(name) for name in names()]
each_target = pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])


def test_names() -> None:
    assert names() == ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_103a", "sm_120a")
    assert [get(name).name for name in names()] == list(names())


def test_unknown_target_lists_the_known_ones() -> None:
    with pytest.raises(UnknownTarget, match=r"'sm_90' \(did you mean 'sm_90a'\?\)") as caught:
        get("sm_90")
    assert isinstance(caught.value, ValueError)
    assert caught.value.known == names()
    assert all(name in str(caught.value) for name in names())


@each_target
def test_every_figure_is_positive_and_cited(target: Target) -> None:
    rows = describe(target)
    assert len(rows) > 60
    for row in rows:
        assert row.source.text, row
        assert isinstance(row.value, bool | str | None) or row.value > 0, row
        assert (row.value is None) == (row.source.kind == "unknown"), row


@each_target
def test_rows_are_named_as_source_takes_them(target: Target) -> None:
    for row in describe(target):
        if ":" not in row.name:
            assert target.source(row.name) == row.source


@each_target
def test_limits_are_consistent(target: Target) -> None:
    assert target.smem_static_limit <= target.smem_per_cta
    assert target.smem_per_cta + target.smem_reserved_per_cta == target.smem_per_sm
    assert target.threads_per_cta <= target.warps_per_sm * target.warp_size
    assert target.ctas_per_sm <= target.warps_per_sm
    assert target.registers_per_sm % target.register_unit == 0
    assert max(target.block_max) <= target.threads_per_cta
    assert 1 <= target.cluster_max_portable <= target.cluster_max_nonportable
    assert target.cluster == (target.cluster_max_portable > 1)


@each_target
def test_capabilities_imply_their_foundations(target: Target) -> None:
    tma = target.tma is not None
    assert tma == target.bulk_copy == target.mbarrier_tx == target.cluster == target.dsmem
    assert not target.tma_multicast or tma
    assert bool(target.tcgen05) == (target.tmem is not None)
    assert (target.setmaxnreg is not None) == target.name.endswith("a")
    assert target.nvrtc_arch == target.name
    major, minor = target.capability
    assert target.name.removesuffix("a") == f"sm_{major}{minor}"


@each_target
def test_rates_reproduce_the_sheet(target: Target) -> None:
    fma = target.rates.tensor_fma("bf16", "f32")
    assert fma is not None
    for part in target.parts:
        flops = 2 * fma * part.sms * part.clock
        assert flops == pytest.approx(part.bf16_tensor, rel=0.01), part.name


@each_target
def test_rates_are_for_types_that_some_form_takes(target: Target) -> None:
    taken = {(f.a, f.acc) for f in target.mma_sync}
    taken |= {(f.a, f.acc) for f in target.block_scaled_mma}
    taken |= {(f.a, f.acc) for f in target.wgmma}
    taken |= {(a, acc) for f in target.tcgen05 for a in f.a for acc in f.acc}
    assert {(r.dtype, r.acc) for r in target.rates.tensor} <= taken
    assert target.rates.tensor_fma("bf16", "f16") is None


def test_measured_ceilings_stay_below_the_sheet() -> None:
    parts = [part for target in TARGETS for part in target.parts if part.measured is not None]
    assert [part.name for part in parts] == ["H200 SXM"]
    for part in parts:
        assert part.measured is not None
        assert part.measured.bf16_gemm < part.bf16_tensor
        assert part.measured.copy < part.dram
        assert part.measured.clock_low < part.measured.clock_high
        assert part.source("clock").kind != "measured"
        assert part.measured.source("copy").kind == "measured"


@each_target
def test_mma_lookup(target: Target) -> None:
    form = target.mma_form("bf16", "bf16", "f32")
    assert form is not None
    assert form.shape == "m16n8k16"
    assert target.mma_form("bf16", "bf16", "f32", (16, 8, 8)) is not None
    assert target.mma_form("bf16", "bf16", "f32", (16, 8, 4)) is None
    assert target.mma_form("bf16", "f16", "f32") is None


@each_target
def test_mma_lookup_prefers_native_and_large_forms(target: Target) -> None:
    for listed in target.mma_sync:
        types = (listed.a, listed.b, listed.acc)
        found = target.mma_form(*types)
        same = [f for f in target.mma_sync if (f.a, f.b, f.acc) == types]
        assert found == max(same, key=lambda f: (f.native, f.k))
        assert set(types) <= set(BITS)


def test_wgmma_lookup() -> None:
    target = get("sm_90a")
    form = target.wgmma_form("bf16", "bf16", "f32", 256)
    assert form is not None
    assert (form.m, form.k, form.mn_major) == (64, 16, True)
    assert target.wgmma_form("bf16", "bf16", "f32", 12) is None
    assert target.wgmma_form("i8", "i8", "i32", 40) is None
    assert target.wgmma_form("i8", "u8", "i32", 48) is not None
    assert get("sm_100a").wgmma_form("bf16", "bf16", "f32", 256) is None
    for listed in target.wgmma:
        assert listed.k * BITS[listed.a] == 32 * 8
        assert listed.mn_major == (BITS[listed.a] == 16)


def test_tcgen05_lookup() -> None:
    b200, b300 = get("sm_100a"), get("sm_103a")
    form = b200.tcgen05_form("bf16", "bf16", "f32", m=128, n=256, cta_group=1)
    assert form is not None
    assert (form.kind, form.k, form.mn_major) == ("f16", 16, True)
    assert b200.tcgen05_form("bf16", "f16", "f32", m=128, n=256, cta_group=1) is None
    assert b200.tcgen05_form("bf16", "bf16", "f32", m=256, n=256, cta_group=1) is None
    assert b200.tcgen05_form("bf16", "bf16", "f32", m=128, n=8, cta_group=1) is None
    assert b200.tcgen05_form("i8", "u8", "i32", m=64, n=48, cta_group=1) is not None
    assert b300.tcgen05_form("i8", "u8", "i32", m=64, n=48, cta_group=1) is None
    assert b200.tcgen05_form("e2m1", "e2m1", "f32", m=128, n=64, cta_group=1, kind="mxf4")
    assert {f.k for f in b300.tcgen05 if f.kind == "mxf4nvf4"} == {64, 96}
    assert {f.k for f in b200.tcgen05 if f.kind == "mxf4nvf4"} == {64}


def test_block_scaled_lookup() -> None:
    target = get("sm_120a")
    form = target.block_scaled_form("mxf4nvf4", "e2m1", "e2m1", "ue4m3")
    assert form is not None
    assert (form.shape, form.scale_vec) == ("m16n8k64", 4)
    assert target.block_scaled_form("mxf4", "e2m1", "e2m1", "ue4m3") is None
    assert get("sm_89").block_scaled_form("mxf4", "e2m1", "e2m1", "ue8m0") is None


def test_swizzles_align_to_their_period() -> None:
    tma = get("sm_90a").tma
    assert tma is not None
    for span in (32, 64, 128):
        swizzle = tma.swizzle(span)
        assert swizzle is not None
        assert swizzle.alignment == 8 * span
    none = tma.swizzle(0)
    assert none is not None
    assert none.alignment == tma.smem_alignment
    assert tma.swizzle(16) is None


def test_figures_without_a_source_are_refused() -> None:
    with pytest.raises(TypeError, match=r"TmaLimits.element_types = .* has no source"):
        TmaLimits(element_types=("bf16",))


def test_a_replaced_figure_keeps_or_takes_a_source() -> None:
    target = get("sm_80")
    bench = Source("measured", "a bench")
    smaller = dataclasses.replace(target, smem_per_cta=fact(64, bench))
    assert (smaller.smem_per_cta, smaller.source("smem_per_cta")) == (64, bench)
    assert smaller.source("smem_per_sm") == target.source("smem_per_sm")
    assert smaller != target


def test_unknown_figures_are_named() -> None:
    with pytest.raises(KeyError, match=r"no figure 'smem_per_block'; figures: .*smem_per_cta"):
        get("sm_80").source("smem_per_block")
    with pytest.raises(KeyError, match=r"no figure 'tma\.rank_max'"):
        get("sm_80").source("tma.rank_max")


@each_target
def test_targets_are_values(target: Target) -> None:
    copy = pickle.loads(pickle.dumps(target))
    assert copy == target
    assert hash(copy) == hash(target)
    assert copy.source("smem_per_cta") == target.source("smem_per_cta")


@pytest.mark.parametrize(
    ("values", "text"),
    [
        ((8, 16, 24, 32, 48, 64, 80), "8..32/8, 48..80/16"),
        ((16, 32), "16, 32"),
        ((64,), "64"),
        ((), ""),
    ],
)
def test_spans(values: tuple[int, ...], text: str) -> None:
    assert spans(values) == text
