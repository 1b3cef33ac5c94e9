"""The assembler's word on every figure it can confirm."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cake.targets import Target, get, names
from cake.targets.forms import MmaForm
from cake.targets.mma_forms import BLOCK_SCALED_MMA, TCGEN05, TCGEN05_I8, WGMMA
from cake.targets.model import Capabilities
from tests.targets.spelling import block_scaled, mma, tcgen05, tcgen05_spellings, wgmma

if TYPE_CHECKING:
    from tests.targets.conftest import Assembler

TARGETS = [get(name) for name in names()]

# An instruction for each capability: ptxas takes it exactly on the targets that claim it.
TMA = "cp.async.bulk.tensor.2d.shared::cluster.global"
COMPLETE = "mbarrier::complete_tx::bytes"
SNIPPETS = {
    "cp_async": "cp.async.cg.shared.global [r0], [g], 16, r1;",
    "ldmatrix": "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {r0, r1, r2, r3}, [r4];",
    "ldmatrix_b8": "ldmatrix.sync.aligned.m16n16.x1.trans.shared.b8 {r0, r1}, [r2];",
    "stmatrix": "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [r4], {r0, r1, r2, r3};",
    "stmatrix_b8": "stmatrix.sync.aligned.m16n8.x1.trans.shared.b8 [r1], {r0};",
    "mbarrier_tx": "mbarrier.arrive.expect_tx.shared::cta.b64 s0, [bar], 16;"
    "mbarrier.try_wait.parity.shared::cta.b64 p, [bar], r0;",
    "bulk_copy": f"cp.async.bulk.shared::cluster.global.{COMPLETE} [r0], [g], 16, [bar];"
    "cp.async.bulk.global.shared::cta.bulk_group [g], [r0], 16;",
    "bulk_reduce": "cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [g], [r0], 16;",
    "tma_reduce": "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group "
    "[g, {r0, r1}], [r2];",
    "tma_gather4": "cp.async.bulk.tensor.2d.shared::cta.global.tile::gather4."
    f"{COMPLETE} [r0], [g, {{r1, r2, r3, r4, r5}}], [bar];",
    "tensormap_replace": "tensormap.replace.tile.global_address.shared::cta.b1024.b64 [r0], s0;",
    "cluster": "barrier.cluster.arrive.aligned; barrier.cluster.wait.aligned;",
    "dsmem": "mapa.shared::cluster.u32 r0, r1, r2; ld.shared::cluster.u32 r3, [r0];"
    f"st.async.shared::cluster.{COMPLETE}.u32 [r0], r3, [bar];",
    "cluster_launch_control": "clusterlaunchcontrol.try_cancel.async.shared::cta."
    f"{COMPLETE}.b128 [r0], [bar];",
    "pdl": "griddepcontrol.wait; griddepcontrol.launch_dependents;",
    "elect_sync": "elect.sync r0|p, 0xffffffff;",
    "redux_int": "redux.sync.add.s32 r0, r1, 0xffffffff;",
    "redux_f32": "redux.sync.min.f32 f0, f1, 0xffffffff;",
    "red_vector_f32": "red.global.add.v2.f32 [g], {f0, f1};"
    "red.global.add.v4.f32 [g], {f0, f1, f2, f3};",
    "atomic_bf16x2": "atom.global.add.noftz.bf16x2 r0, [g], r1;",
    "global_256bit": "ld.global.v8.f32 {f0, f1, f2, f3, f4, f5, f6, f7}, [g];",
    "bf16x2_fma": "fma.rn.bf16x2 r0, r1, r2, r3; max.bf16x2 r0, r1, r2;",
    "bf16x2_add": "add.rn.bf16x2 r0, r1, r2;",
    "bf16x2_transcendental": "ex2.approx.ftz.bf16x2 r0, r1; tanh.approx.bf16x2 r0, r1;",
    "f32x2": "fma.rn.f32x2 s0, s1, s2, s3;",
    "max3_f32": "max.f32 f0, f1, f2, f3;",
    "fp8_convert": "cvt.rn.satfinite.e4m3x2.f32 h0, f0, f1; cvt.rn.f16x2.e5m2x2 r0, h1;",
    "fp4_convert": ".reg .b8 b; cvt.rn.satfinite.e2m1x2.f32 b, f0, f1;",
    "stochastic_rounding": "cvt.rs.bf16x2.f32 r0, f0, f1, r1;",
    "tcgen05_ld_red": "tcgen05.ld.red.sync.aligned.32x32b.x2.min.f32 {f0, f1}, f2, [r0];",
}
MULTICAST = f"{TMA}.tile.{COMPLETE}.multicast::cluster [r0], [g, {{r1, r2}}], [bar], h0;"
SETMAXNREG = "setmaxnreg.dec.sync.aligned.u32 {};"
ALLOC = "tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [r0], {};"


each_target = pytest.mark.parametrize("target", TARGETS, ids=[t.name for t in TARGETS])


def accepted(assembler: Assembler, snippets: list[str], target: Target) -> None:
    """All snippets together; the log of ptxas is the message."""
    result = assembler.ptx(snippets, target.nvrtc_arch)
    assert result.ok, result.log


def refused(assembler: Assembler, snippets: list[str], target: Target) -> None:
    """Each snippet alone, for one error would hide whether the others are errors too."""
    taken = [s for s in snippets if assembler.accepts(s, target.nvrtc_arch)]
    assert taken == []


def test_every_capability_has_a_probe() -> None:
    assert {*SNIPPETS, "tma_multicast"} == set(Capabilities.__annotations__)


@each_target
def test_capabilities_are_those_that_ptxas_takes(assembler: Assembler, target: Target) -> None:
    claimed = [s for name, s in SNIPPETS.items() if getattr(target, name)]
    others = [s for name, s in SNIPPETS.items() if not getattr(target, name)]
    accepted(assembler, claimed, target)
    refused(assembler, others, target)


@each_target
def test_multicast_is_claimed_where_ptxas_does_not_advise_against_it(
    assembler: Assembler, target: Target
) -> None:
    result = assembler.ptx([MULTICAST], target.nvrtc_arch)
    assert (result.ok and "Advisory" not in result.log) == target.tma_multicast, result.log


@each_target
def test_static_shared_memory_limit(assembler: Assembler, target: Target) -> None:
    def compiles(size: int) -> bool:
        return assembler.cuda(
            f'extern "C" __global__ void probe(char* out) {{ __shared__ char s[{size}];'
            "s[threadIdx.x] = *out; __syncthreads(); *out = s[0]; }",
            target.nvrtc_arch,
        ).ok

    assert compiles(target.smem_static_limit)
    assert not compiles(target.smem_static_limit + 1)


@each_target
def test_named_barrier_ids(assembler: Assembler, target: Target) -> None:
    accepted(assembler, [f"barrier.sync {i}, 64;" for i in range(target.named_barriers)], target)
    refused(assembler, [f"barrier.sync {target.named_barriers}, 64;"], target)


@each_target
def test_copy_sizes(assembler: Assembler, target: Target) -> None:
    copy = "cp.async.ca.shared.global [r0], [g], {};"
    accepted(assembler, [copy.format(n) for n in target.cp_async_sizes], target)
    refused(assembler, [copy.format(n) for n in (2, 12, 32)], target)
    if target.bulk_copy:
        bulk = f"cp.async.bulk.shared::cluster.global.{COMPLETE} [r0], [g], {{}}, [bar];"
        accepted(assembler, [bulk.format(n * target.bulk_unit) for n in (1, 3)], target)
        refused(assembler, [bulk.format(n * target.bulk_unit // 2) for n in (1, 3)], target)


@each_target
def test_mma_sync_forms_are_those_that_ptxas_takes(assembler: Assembler, target: Target) -> None:
    def bare(form: MmaForm) -> MmaForm:
        return replace(form, native=True)

    claimed = {bare(form) for form in target.mma_sync}
    others = {bare(form) for t in TARGETS for form in t.mma_sync} - claimed
    never = [
        MmaForm(m=16, n=8, k=16, a="bf16", b="bf16", acc="f16"),
        MmaForm(m=16, n=8, k=16, a="tf32", b="tf32", acc="f32"),
        MmaForm(m=16, n=8, k=64, a="i8", b="i8", acc="i32"),
    ]
    accepted(assembler, [mma(form) for form in claimed], target)
    refused(assembler, [mma(form) for form in [*others, *never]], target)


@each_target
def test_native_mma_forms_are_one_machine_instruction(
    assembler: Assembler, target: Target, tmp_path: Path
) -> None:
    kernels = [mma(form, memory=True) for form in target.mma_sync]
    wrong = []
    for form, code in zip(
        target.mma_sync, assembler.sass(kernels, target.nvrtc_arch, tmp_path), strict=True
    ):
        products = re.findall(r"\b[A-Z]MMA\.\S+", code)
        if (len(products) == 1) != form.native:
            wrong.append((str(form), products))
    assert wrong == []


@each_target
def test_block_scaled_forms(assembler: Assembler, target: Target) -> None:
    unscaled = BLOCK_SCALED_MMA[0]
    mixed = [
        replace(unscaled, scale="ue4m3"),
        replace(BLOCK_SCALED_MMA[-3], scale_vec=4),
        replace(BLOCK_SCALED_MMA[-1], scale="ue8m0"),
    ]
    others = [f for f in BLOCK_SCALED_MMA if f not in target.block_scaled_mma]
    accepted(assembler, [block_scaled(form) for form in target.block_scaled_mma], target)
    refused(assembler, [block_scaled(form) for form in [*others, *mixed]], target)


@each_target
def test_wgmma_forms(assembler: Assembler, target: Target) -> None:
    for form in target.wgmma:
        both = (False, True)
        spellings = [wgmma(form, n, a_in_registers=r) for n in form.n_values for r in both]
        if form.mn_major:
            spellings.append(wgmma(form, 64, transposed=True))
            spellings.append(wgmma(form, 64, transposed=True, a_in_registers=True))
        accepted(assembler, spellings, target)
    if not target.wgmma:
        refused(assembler, [wgmma(form, 64) for form in WGMMA], target)


def test_wgmma_refuses_what_no_form_lists(assembler: Assembler) -> None:
    target = get("sm_90a")
    for form in target.wgmma:
        absent = sorted({12, 264, *range(8, 257, 8)} - set(form.n_values))
        refused(assembler, [wgmma(form, n) for n in absent], target)
        if not form.mn_major:
            refused(assembler, [wgmma(form, 64, transposed=True)], target)
    bf16 = target.wgmma_form("bf16", "bf16", "f32", 64)
    assert bf16 is not None
    refused(assembler, [wgmma(replace(bf16, acc="f16"), 64)], target)


@each_target
def test_tcgen05_kinds(assembler: Assembler, target: Target) -> None:
    kinds = {form.kind for form in target.tcgen05}
    for group in (1, 2):
        forms = [form for form in target.tcgen05 if form.cta_group == group]
        accepted(assembler, [s for form in forms for s in tcgen05_spellings(form)], target)
    others = [form for form in (*TCGEN05, *TCGEN05_I8) if form.kind not in kinds]
    refused(assembler, sorted({s for form in others for s in tcgen05_spellings(form)}), target)
    refused(assembler, [tcgen05("mxf8f6f4", 1, block=16), tcgen05("mxf4", 1, block=16)], target)


@each_target
def test_tmem_allocations(assembler: Assembler, target: Target) -> None:
    sizes = (16, 32, 48, 64, 96, 128, 256, 512, 1024)
    taken = [n for n in sizes if assembler.accepts(ALLOC.format(n), target.nvrtc_arch)]
    assert taken == [n for n in sizes if target.tmem is not None and target.tmem.admits(n)]


@each_target
def test_setmaxnreg_range(assembler: Assembler, target: Target) -> None:
    counts = (16, 20, 24, 25, 32, 168, 248, 256, 264)
    taken = [n for n in counts if assembler.accepts(SETMAXNREG.format(n), target.nvrtc_arch)]
    limits = target.setmaxnreg
    assert taken == [n for n in counts if limits is not None and limits.admits(n)]


@each_target
def test_tma_ranks_and_reductions(assembler: Assembler, target: Target) -> None:
    def load(rank: int) -> str:
        at = ", ".join(["r1"] * rank)
        return (
            f"cp.async.bulk.tensor.{rank}d.shared::cluster.global.tile.{COMPLETE} "
            f"[r0], [g, {{{at}}}], [bar];"
        )

    def reduce(op: str) -> str:
        return (
            f"cp.reduce.async.bulk.tensor.1d.global.shared::cta.{op}.tile.bulk_group "
            "[g, {r0}], [r1];"
        )

    if target.tma is None:
        refused(assembler, [load(1), reduce("add")], target)
        return
    ranks = range(1, target.tma.rank_max + 1)
    accepted(assembler, [load(rank) for rank in ranks], target)
    accepted(assembler, [reduce(op) for op in target.tma.reductions], target)
    refused(assembler, [load(target.tma.rank_max + 1), reduce("mul")], target)
