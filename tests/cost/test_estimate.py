"""Sanity of estimates: they grow with the work, and known kernels come out near known times."""

import pytest

from cake.cost import (
    DoesNotFit,
    ScheduleEstimate,
    UnknownPart,
    estimate_page,
    estimate_schedule,
    machine,
)
from cake.kernels import bind, schedules
from cake.lang.elaborate import parse
from cake.workloads import get, problem


def found(workload: str, *, variant: int = 0, part=None, meta=None, **shape: int):
    """The estimate of a shipped schedule."""
    instance = problem(get(workload), shape, "bf16")
    bound = bind(schedules(workload, "sm_90a")[variant], instance, meta)
    numbers = {k: v for k, v in instance.parameters.items() if not isinstance(v, str)}
    return estimate_schedule(bound.programs, {**instance.dims, **numbers}, part=part)


def row(estimate: ScheduleEstimate, name: str):
    return next(r for r in estimate.kernels[-1].resources if r.name == name)


GEMM = """\
@cake.schedule(target="sm_90a")
def gemm(a: Tensor[bf16, "M", "K"], b: Tensor[bf16, "N", "K"], d: Tensor[bf16, "M", "N"], *,
         CLUSTER: meta(1, 2) = 1):
    tiles = persistent(cdiv(M, 128), cdiv(N, 256), raster=8)
    if CLUSTER > 1:
        cluster(CLUSTER)
    A = smem(bf16, (128, 64), stages=4, swizzle=128)
    B = smem(bf16, (256, 64), stages=4, swizzle=128)
    math = role(warpgroups=2, regs=232)
    load = role(warps=1, regs=40)
    ab = pipeline(A, B, producer=load, consumer=math, multicast=CLUSTER > 1)
    with load:
        for m, n in tiles:
            for k in range(cdiv(K, 64)):
                with ab.fill() as s:
                    tma_load(A[s], a[m * 128, k * 64])
                    tma_load(B[s], b[n * 256, k * 64], multicast=CLUSTER > 1)
    with math as wg:
        for m, n in tiles:
            acc = fragment(f32, (64, 256), fill=0.0)
            for k in range(cdiv(K, 64)):
                with ab.use() as s:
                    wgmma(acc, A[s][wg * 64 : wg * 64 + 64], B[s].T)
                    wgmma_wait(0)
            store(d[m * 128 + wg * 64, n * 256], cast(acc, bf16))
"""
CUBE = {"M": 8192, "N": 8192, "K": 8192}


def sample(text: str, dims: dict[str, int], **meta: int) -> ScheduleEstimate:
    return estimate_schedule([parse(text, meta=meta).program()], dims)


@pytest.mark.parametrize("cluster", [1, 2])
def test_a_large_gemm_is_bound_by_the_tensor_pipe_near_its_measured_time(cluster: int) -> None:
    """cuBLAS takes 1.39 ms on an H200 (789 TFLOP/s)."""
    gemm = sample(GEMM, CUBE, CLUSTER=cluster)
    assert gemm.bound == "tensor"
    assert 1.4 / 1.5 < gemm.seconds * 1e3 < 1.4 * 1.5


def test_the_shipped_gemm_is_estimated_near_its_measured_time() -> None:
    assert 1.4 / 1.5 < found("gemm", **CUBE).seconds * 1e3 < 1.4 * 1.5


def test_a_multicast_operand_crosses_l2_once_for_its_cluster() -> None:
    alone, shared = (sample(GEMM, CUBE, CLUSTER=c) for c in (1, 2))
    a, b, d = 128 * 64, 256 * 64, 128 * 256 * 64 / 8192
    assert row(shared, "l2").work / row(alone, "l2").work == pytest.approx(
        (a + b / 2 + d) / (a + b + d), rel=1e-3
    )


def test_mma_sync_does_not_reach_the_rate_of_wgmma() -> None:
    newer = sample(GEMM, CUBE)
    instance = problem(get("gemm"), CUBE, "bf16")
    old = next(f for f in schedules("gemm", "sm_90a") if f.written_for == "sm_80")
    older = estimate_schedule(bind(old, instance).programs, instance.dims)
    assert row(older, "tensor").seconds > 1.2 * row(newer, "tensor").seconds


def test_row_kernels_are_bound_by_memory_near_the_copy_rate() -> None:
    for workload, shape in (("rmsnorm", {"D": 8192}), ("softmax", {"N": 8192})):
        estimate = found(workload, M=8192, **shape)
        floor = 2 * 2 * 8192 * 8192 / 4.24e12
        assert estimate.bound in ("hbm", "l2")
        assert floor < estimate.seconds < 1.5 * floor


@pytest.mark.parametrize(
    ("workload", "shape", "grown"),
    [
        ("rmsnorm", {"M": 8192, "D": 4096}, {"M": 16384}),
        ("rmsnorm", {"M": 8192, "D": 4096}, {"D": 8192}),
        ("gemm", {"M": 4096, "N": 4096, "K": 4096}, {"K": 8192}),
        ("gemm", {"M": 4096, "N": 4096, "K": 4096}, {"N": 8192}),
        ("kmeans_assign", {"B": 8, "N": 65536, "K": 1024, "D": 128}, {"K": 2048}),
        ("kmeans_update", {"B": 33, "N": 65536, "K": 1024, "D": 128}, {"N": 131072}),
    ],
)
def test_twice_the_work_takes_about_twice_the_time(workload, shape, grown) -> None:
    small, large = found(workload, **shape), found(workload, **{**shape, **grown})
    assert 1.6 < large.seconds / small.seconds < 2.4


ROW_SUMS = """\
@cake.schedule(target="sm_90a")
def sums(x: Tensor[bf16, "M", "D"], y: Tensor[f32, "M"], *, V: meta(2, 4, 8) = 8):
    (block,) = grid(cdiv(M, 4))
    rows = role(warps=4)
    with rows as u:
        total = 0.0
        for d in range(lane() * V, D, 32 * V):
            v = load(x[block * 4 + u, d], width=V)
            for i in static_range(V):
                total = total + cast(v[i], f32)
        if lane() == 0:
            store(y[block * 4 + u], total)
"""


def test_narrow_loads_expose_latency() -> None:
    dims = {"M": 8192, "D": 4096}
    wide, narrow = (sample(ROW_SUMS, dims, V=v) for v in (8, 2))
    assert wide.bound == "hbm"
    assert narrow.bound == "latency"
    assert row(narrow, "latency").seconds == 4 * row(wide, "latency").seconds


def test_fewer_warpgroups_hide_less_arithmetic_behind_their_products() -> None:
    shape = {"B": 32, "N": 65536, "K": 1024, "D": 128}
    four = found("kmeans_assign", meta={"WG": 4}, **shape)
    two = found("kmeans_assign", meta={"WG": 2}, **shape)
    assert two.kernels[-1].warps_per_scheduler < four.kernels[-1].warps_per_scheduler
    assert two.seconds > four.seconds


def test_the_tail_of_a_nearly_empty_last_wave_is_paid_for() -> None:
    full = found("gemm", M=128 * 132, N=256, K=4096)
    tail = found("gemm", M=128 * 133, N=256, K=4096)
    assert full.kernels[0].balance == 1
    assert tail.kernels[0].balance < 0.6
    assert tail.seconds > 1.5 * full.seconds


def test_only_a_measured_part_gives_more_than_a_bound() -> None:
    shape = {"M": 8192, "N": 8192, "K": 8192}
    h200, h100 = found("gemm", **shape), found("gemm", part="H100 SXM5", **shape)
    assert (h200.is_bound, h100.is_bound) == (False, True)
    assert h200.kernels[0].calibrated
    assert row(h100, "tensor").seconds < row(h200, "tensor").seconds
    with pytest.raises(UnknownPart, match="H200 SXM, H100 SXM5"):
        machine("sm_90a", "B200")


def test_the_page_names_time_part_bound_and_every_resource() -> None:
    text = estimate_page(found("kmeans_assign", B=8, N=65536, K=1024, D=128))
    assert "on H200 SXM, bound by tensor" in text
    assert all(f"\n  {r} " in text for r in ("tensor", "alu", "smem", "l2", "hbm", "latency"))
    assert max(map(len, text.split("\n"))) <= 120
    bound = estimate_page(found("gemm", part="H100 SXM5", M=512, N=512, K=512))
    assert "at least" in bound
    assert "a bound, not a prediction" in bound


def test_built_registers_replace_the_guess() -> None:
    contract = get("rmsnorm")
    instance = problem(contract, {"M": 8192, "D": 4096}, "bf16")
    bound = bind(schedules("rmsnorm", "sm_90a")[0], instance)
    dims = {**instance.dims, "eps": 1e-6}
    guess = estimate_schedule(bound.programs, dims).kernels[0].occupancy
    built = estimate_schedule(bound.programs, dims, built_registers={"rmsnorm": 128})
    assert guess.guessed
    assert not built.kernels[0].occupancy.guessed
    assert built.kernels[0].occupancy.ctas == 65536 // (128 * 128)


def test_a_cta_that_no_sm_holds_is_refused_with_the_figures() -> None:
    text = (
        '@cake.schedule(target="sm_90a")\ndef k(y: Tensor[f32, "M"]):\n    (m,) = grid(M)\n'
        "    S = smem(f32, (1024, 64))\n    r = role(warps=1)\n    with r:\n"
        "        store(S[0, 0], 1.0)\n        store(y[m], load(S[0, 0]))\n"
    )
    with pytest.raises(DoesNotFit, match="needs 262144 bytes of shared memory, sm_90a has 232448"):
        estimate_schedule([parse(text).program()], {"M": 8})
