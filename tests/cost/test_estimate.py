"""Sanity of estimates: they grow with the work, and known kernels come out near known times."""

from dataclasses import replace

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


def found(workload: str, *, variant: int = 0, part=None, meta=None, edit=(), **shape: int):
    """The estimate of a shipped schedule; ``edit`` replaces parts of its text."""
    contract = get(workload)
    instance = problem(contract, shape, "bf16")
    file = schedules(workload, "sm_90a")[variant]
    text = file.text
    for old, new in edit:
        assert old in text
        text = text.replace(old, new, 1)
    bound = bind(replace(file, text=text), instance, meta)
    numbers = {k: v for k, v in instance.parameters.items() if not isinstance(v, str)}
    return estimate_schedule(bound.programs, {**instance.dims, **numbers}, part=part)


def row(estimate: ScheduleEstimate, name: str):
    return next(r for r in estimate.kernels[-1].resources if r.name == name)


MULTICAST = (
    ("    A = smem(", "    cluster(2)\n    A = smem("),
    ("consumer=math)", "consumer=math, multicast=True)"),
    ("b[n * BN, k * BK])", "b[n * BN, k * BK], multicast=True)"),
)


def test_a_large_gemm_is_bound_by_the_tensor_pipe_near_its_measured_time() -> None:
    """cuBLAS takes 1.39 ms on an H200 (789 TFLOP/s)."""
    for edit in ((), MULTICAST):
        gemm = found("gemm", edit=edit, M=8192, N=8192, K=8192)
        assert gemm.bound == "tensor"
        assert 1.4 / 1.5 < gemm.seconds * 1e3 < 1.4 * 1.5


def test_without_multicast_the_operands_of_a_gemm_cross_l2_more_often() -> None:
    plain = found("gemm", M=8192, N=8192, K=8192)
    shared = found("gemm", edit=MULTICAST, M=8192, N=8192, K=8192)
    assert row(plain, "l2").work > 1.4 * row(shared, "l2").work


def test_mma_sync_does_not_reach_the_rate_of_wgmma() -> None:
    newer = found("gemm", M=8192, N=8192, K=8192)
    contract = get("gemm")
    instance = problem(contract, {"M": 8192, "N": 8192, "K": 8192}, "bf16")
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
    wide, narrow = (
        estimate_schedule([parse(ROW_SUMS, meta={"V": v}).program()], dims) for v in (8, 2)
    )
    assert wide.bound == "hbm"
    assert narrow.bound == "latency"
    assert row(narrow, "latency").seconds == 4 * row(wide, "latency").seconds


def test_one_warpgroup_cannot_hide_its_arithmetic_behind_its_products() -> None:
    shape = {"B": 32, "N": 65536, "K": 1024, "D": 128}
    four = found("kmeans_assign", meta={"WG": 4}, **shape)
    one = found("kmeans_assign", meta={"WG": 1}, **shape)
    assert one.kernels[-1].warps_per_scheduler < four.kernels[-1].warps_per_scheduler
    assert one.seconds > four.seconds


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
