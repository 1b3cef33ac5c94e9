"""The emitted text: golden kernels, statements, arguments, launch figures."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from cake.codegen.abi import DimArg, PointerArg, ScalarArg, StrideArg, TensorMapArg
from cake.codegen.cuda import emit_program
from cake.codegen.cuda_writer import without_line_directives
from cake.codegen.hostexpr import HostExpr
from cake.diag import CakeError
from cake.ir.dtypes import F32, I32
from cake.ir.nodes import DimRef
from cake.ir.program import Grid, WorkspaceDecl
from cake.ir.types import Scalar
from tests.codegen.schedules import COPY, GEMM, MIXED, SCALE, program

GOLDEN = Path(__file__).parent / "golden"


def body(source: str) -> str:
    """The kernel without the helpers in front of it, as people read it."""
    text = without_line_directives(source)
    return text[text.index('extern "C"') :]


@pytest.mark.parametrize(("name", "source"), [("scale", SCALE), ("copy", COPY)])
def test_golden(name: str, source: str) -> None:
    """CAKE_UPDATE_GOLDEN=1 accepts a change of the emitted text."""
    found, file = body(emit_program(program(source)).source), GOLDEN / f"{name}.cu"
    if os.environ.get("CAKE_UPDATE_GOLDEN"):
        file.write_text(found)
    assert found == file.read_text()


def test_emission_is_deterministic() -> None:
    assert emit_program(program(MIXED)).source == emit_program(program(MIXED)).source


def test_lines_lead_back_to_the_schedule() -> None:
    source = emit_program(program(SCALE)).source
    line = 1 + SCALE.split("\n").index("            v[j] = v[j] * a")
    assert f'// v[j] = v[j] * a\n#line {line} "k.py"\n' in source


def test_statements() -> None:
    text = body(emit_program(program(MIXED)).source)
    for expected in (
        "while (true) {\n    const int load = load_global_s32(flags + i_);\n"
        "    if (!(load == 0)) break;\n",
        "for (int k = i_; k < N; k += 2) {",
        "acc[i] = (acc[i] * 2.0f) + cols[i / 4 % 8 * 2 + i % 2];",  # fused, in place
        "} else if (acc[j_] > 0.5f) {",  # lanes() is an alias
        "out[1] = (out[1] & 0xffffu) | ((unsigned)((unsigned short)out[2]) << 16);",
        "best[i] = best_1[i];",  # results of a tuple are copied: they may be operands
    ):
        assert expected in text


def test_arguments_of_pointers_have_strides() -> None:
    abi = emit_program(program(SCALE)).abi
    assert abi.args == (
        PointerArg(tensor="x"),
        PointerArg(tensor="y"),
        DimArg(symbol="M", dtype="i32"),
        DimArg(symbol="N", dtype="i32"),
        StrideArg(tensor="x", axis=0, multiple=4),
        StrideArg(tensor="y", axis=0, multiple=4),
        ScalarArg(name="a"),
    )
    assert [(t.name, t.writable, t.align) for t in abi.tensors] == [
        ("x", False, 16),
        ("y", True, 16),
    ]
    assert emit_program(program(SCALE, V=1)).abi.tensor("x").align == 4


def test_arguments_of_tensor_maps() -> None:
    abi = emit_program(program(COPY)).abi
    x = abi.args[0]
    assert x == TensorMapArg(tensor="x", box=(64, 64), axes=(0, 1), dtype="bf16", swizzle=128)
    assert [type(a).__name__ for a in abi.args] == ["TensorMapArg"] * 2 + ["DimArg"] * 2
    assert abi.smem_bytes == 2 * 8192 + 4 * 8
    assert abi.block == 64


def test_launch_figures() -> None:
    abi = emit_program(program(SCALE)).abi
    env = {"M": 5, "N": 1025, "device_sms": 132}
    assert HostExpr(abi.grid[0]).evaluate(env) == 5 * 3
    guards = {g.message: HostExpr(g.text) for g in abi.guards}
    assert guards["require(N % 4 == 0)"].evaluate(env) == 0
    assert guards["require(N % 4 == 0)"].evaluate({"N": 8}) == 1
    assert guards["dimension M is below 2^31 - 2^16: indices are i32"].evaluate({"M": 2**31}) == 0
    assert HostExpr(emit_program(program(COPY)).abi.grid[0]).evaluate(env) == min(17, 132)
    too_many = {"M": 2**31 - 1, "N": 2**31 - 1}
    assert not all(g.evaluate({**env, **too_many}) for g in guards.values())


CLUSTER = """
@cake.schedule(target="sm_90a")
def share(x: Tensor[bf16, "M", "N"], y: Tensor[f32, "M", "N"], hits: Tensor[i32, 1]):
    cluster(2)
    tiles = persistent(cdiv(M, 64), cdiv(N, 64), raster=4)
    X = smem(bf16, (64, 64), stages=2, swizzle=128)
    load = role(warps=1)
    math = role(warpgroups=1)
    ring = pipeline(X, producer=load, consumer=math, multicast=True)
    with load:
        for m, n in tiles:
            with ring.fill() as s:
                tma_load(X[s], x[0, n * 64], multicast=True)
    with math:
        for m, n in tiles:
            with ring.use() as s:
                store(y[m * 64, n * 64], fragment(f32, (64, 64), fill=1.0))
"""


def test_clusters_take_neighbours_and_store_only_tiles_that_exist() -> None:
    emitted = emit_program(program(CLUSTER))
    text = body(emitted.source)
    assert "__cluster_dims__(2, 1, 1)" in text
    assert "tile < ((tiles_0 + 1) / 2) * tiles_1; tile += (int)gridDim.x / 2)" in text
    assert "const bool tile_exists = m < tiles_0;" in text
    assert "if (tile_exists) {" in text
    assert "mbar_init(smem + ring_empty_at + i * 8, 8);" in text  # 4 warps of 2 CTAs
    assert text.rstrip().endswith("__syncwarp();\n  sync_cluster();\n}")
    assert emitted.abi.cluster == (2, 1, 1)
    grid = HostExpr(emitted.abi.grid[0])
    assert grid.evaluate({"M": 65, "N": 64, "device_sms": 131}) == 2
    assert grid.evaluate({"M": 6400, "N": 6400, "device_sms": 131}) == 130


def test_results_of_updates_need_whole_clusters() -> None:
    source = CLUSTER.replace(
        "                store(y[",
        "                old = atomic_add(hits[0], 1)\n                store(y[",
    )
    guards = [g.text for g in emit_program(program(source)).abi.guards]
    assert guards[-1] == "((M + 63) // 64) % 2 == 0"


def test_register_budgets_and_idle_warps() -> None:
    source = COPY.replace("load = role(warps=1)", "load = role(warps=1, regs=40)").replace(
        "save = role(warps=1)", "save = role(warpgroups=1, regs=232)"
    )
    text = body(emit_program(program(source)).source)
    inc = text.index("setmaxnreg.dec.sync.aligned.u32 232")
    dec = text.index("setmaxnreg.dec.sync.aligned.u32 40")
    assert text.index("if (warp < 4) {") < inc < text.index("} else {") < dec
    assert dec < text.index("if (warp == 4) {")
    assert "__launch_bounds__(256, 1)" in text


@pytest.mark.parametrize("own", [True, False])
def test_dependent_launches_wait_once(own: bool) -> None:
    source = COPY.replace("    X =", "    launch(pdl=True)\n    X =")
    if own:
        source = source.replace("    with load:\n", "    with load:\n        pdl_wait()\n")
    emitted = emit_program(program(source))
    assert emitted.abi.pdl
    assert emitted.source.count("griddepcontrol.wait") == 1
    assert body(emitted.source).count("griddepcontrol.wait") == int(not own)


WORKSPACE = """
@cake.schedule(target="sm_80")
def fill(x: Tensor[f32, "N"], W: Tensor[f32, "R", "N"]):
    m = grid(cdiv(N, 64))
    work = role(warps=1)
    with work:
        for n in range(lane() * 4, N, 128):
            store(W[m, n], load(x[n], 4))
"""


def test_workspaces_are_contiguous() -> None:
    p = program(WORKSPACE)
    (grid,) = p.find(Grid)
    n = DimRef(name="N", type=Scalar(I32), loc=p.loc)
    shape = (grid.extents[0], n)
    w = WorkspaceDecl(name="W", dtype=F32, shape=shape, zeroed=True, loc=p.loc)
    emitted = emit_program(replace(p, params=p.params[:1], resources=(*p.resources, w)))
    text = body(emitted.source)
    assert "const long long W_stride_0 = (long long)N;" in text
    assert "W + (long long)m * W_stride_0 + n" in text
    (found,) = emitted.abi.workspaces
    assert found.zeroed
    assert HostExpr(found.bytes).evaluate({"N": 100}) == 2 * 100 * 4
    rows = [HostExpr(g.text) for g in emitted.abi.guards if "rows of W" in g.message]
    assert [r.evaluate({"N": 100}) for r in rows] == [1]
    assert [r.evaluate({"N": 101}) for r in rows] == [0]


LOOPS = """
@cake.schedule(target="sm_80")
def loops(x: Tensor[i32, "N"], y: Tensor[i32, "N"]):
    work = role(warps=1)
    with work:
        end = load(x[0])
        for i in range(0, end, load(x[1])):
            end = end + 1
            store(y[i], end)
        if load(x[2]) > 0:
            store(y[0], 1)
        elif load(x[3]) > 0:
            store(y[0], 2)
"""


def test_ranges_are_fixed_before_the_loop() -> None:
    text = body(emit_program(program(LOOPS)).source)
    assert "const int i_stop = end;" in text
    assert "for (int i_ = 0; i_ < i_stop; i_ += load) {" in text
    assert "} else {" in text  # the second condition loads, so it is no `else if`
    assert "else if" not in text


def test_names_of_helpers_and_keywords_are_avoided() -> None:
    source = COPY.replace("for m, n", "for elect_one, register").replace("[m * ", "[elect_one * ")
    text = body(emit_program(program(source.replace(" n * ", " register * "))).source)
    assert "const int elect_one_ = outer;" in text
    assert "const int register_ = tile - outer * tiles_1;" in text
    assert "const bool leader = elect_one();" in text


def test_smem_beyond_the_limit_is_refused() -> None:
    with pytest.raises(CakeError) as error:
        emit_program(program(COPY.replace("meta(2, 3) = 2", "meta(64) = 64")))
    found = error.value.diagnostics[0]
    assert found.code == "CK621"
    assert found.facts["limit"] == 232448
    assert found.facts["bytes"] == 64 * 8192 + 128 * 8
    assert found.span is not None


def test_too_many_threads_are_refused() -> None:
    with pytest.raises(CakeError, match="1056 threads, a CTA has at most 1024"):
        emit_program(program(COPY.replace("save = role(warps=1)", "save = role(warps=32)")))


def test_setmaxnreg_needs_the_target() -> None:
    source = SCALE.replace("role(warpgroups=1)", "role(warpgroups=1, regs=40)")
    with pytest.raises(CakeError, match="sm_80 has no setmaxnreg"):
        emit_program(program(source))


def test_a_primitive_without_emission_is_named() -> None:
    with pytest.raises(CakeError, match="wgmma has no emission for sm_100a"):
        emit_program(replace(program(GEMM), target="sm_100a"))


BOTH_SIDES = """
@cake.schedule(target="sm_80")
def both(x: Tensor[f32, "N"], y: Tensor[f32, "N"]):
    X = smem(f32, (128,), stages=3)
    Y = smem(f32, (128,), stages=1)
    work = role(warps=1)
    ring = pipeline(X, producer=work, consumer=work)
    single = pipeline(Y, producer=work, consumer=work)
    with work:
        for n in range(0, N, 128):
            v = var(f32, 0.0)
            with ring.fill() as s:
                cp_async(X[s], x[n])
            with ring.use() as s:
                v = load(X[s][lane()])
            with single.fill() as t:
                store(Y[t][lane()], v)
            with single.use() as t:
                store(y[n + lane()], load(Y[t][lane()]))
"""


def test_each_side_of_a_ring_has_its_cursor() -> None:
    text = body(emit_program(program(BOTH_SIDES)).source)
    for name in ("ring_stage", "ring_stage_1", "single_stage", "single_stage_1"):
        assert f"  int {name} = 0;" in text
    for name in ("ring_phase", "ring_phase_1", "single_phase", "single_phase_1"):
        assert f"  unsigned {name} = 0;" in text
    assert "if (++ring_stage == 3) { ring_stage = 0; ring_phase ^= 1; }" in text
    assert "if (++ring_stage_1 == 3) { ring_stage_1 = 0; ring_phase_1 ^= 1; }" in text
    assert "mbar_wait(smem + ring_empty_at + ring_slot * 8u, ring_phase ^ 1);" in text
    assert "mbar_wait(smem + ring_full_at + ring_slot_1 * 8u, ring_phase_1);" in text
    assert "single_phase ^= 1;" in text  # one stage: only the phase moves
    assert "++single_stage" not in text
