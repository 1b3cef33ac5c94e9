"""Launches: arguments, grids, clusters, workspaces, CTAs together, limits, reports, chains."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cake.lang.elaborate import parse
from cake.simulate import ORDERS, Options, simulate, simulate_chain
from tests.simulate.programs import arrays, finding, line_of, program, run
from tests.simulate.right_schedules import CLUSTER, FLAG, RING

# -- arguments -------------------------------------------------------------------------------------

SCALE = """
(b,) = grid(cdiv(N, 32))
math = role(warps=1)
with math:
    i = b * 32 + lane()
    store(y[i], load(x[i], mask=i < N, fill=0.0) * a, mask=i < N)
"""
SCALE_PARAMS = 'x: Tensor[f32, "N"], y: Tensor[f32, "N"], a: f32'


def scaled(n: int, **changes: Any) -> Any:
    tensors = {"x": np.arange(n, dtype=np.float32), "y": np.zeros(n, np.float32)}
    made = program(SCALE, params=SCALE_PARAMS)
    return simulate(made, {**tensors, **changes}, {"a": 2.0}), tensors


@pytest.mark.parametrize("n", [1, 31, 32, 33, 100])
def test_every_cta_of_a_grid_runs(n: int) -> None:
    result, tensors = scaled(n)
    assert result.ok
    assert result.ctas == -(-n // 32)
    np.testing.assert_array_equal(tensors["y"], 2 * tensors["x"])


def test_an_empty_grid_runs_nothing() -> None:
    result, _ = scaled(0)
    assert (result.ok, result.ctas) == (True, 0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.zeros(8, np.float64)}, "x must be f32 of rank 1, got float64 of rank 1"),
        ({"x": np.zeros((8, 1), np.float32)}, "x must be f32 of rank 1, got float32 of rank 2"),
        ({"y": np.zeros(9, np.float32)}, "y: dimension N is 9, expected 8"),
    ],
)
def test_arrays_that_do_not_fit_are_findings(changes: dict[str, Any], message: str) -> None:
    result, _ = scaled(8, **changes)
    assert [(d.code, d.message) for d in result.findings] == [("CK511", message)]


def test_missing_arguments_are_findings() -> None:
    made = program(SCALE, params=SCALE_PARAMS)
    x = np.zeros(4, np.float32)
    (lost,) = simulate(made, {"x": x}, {"a": 1.0}).findings
    assert lost.message == "tensor y is missing"
    (lost,) = simulate(made, {"x": x, "y": x.copy()}).findings
    assert lost.message == "scalar a is missing"


def test_strided_arrays_are_read_and_written_in_place() -> None:
    whole = np.arange(64, dtype=np.float32)
    result, _ = scaled(32, x=whole[::2], y=(out := np.zeros((32, 3), np.float32))[:, 1])
    assert result.ok
    np.testing.assert_array_equal(out[:, 1], 2 * whole[::2])
    assert not out[:, 0].any()


# -- blocks, orders of CTAs, persistent tiles ------------------------------------------------------

PERSISTENT = """
tiles = persistent(3, 5)
math = role(warps=1)
with math:
    n = 0
    for i, j in tiles:
        n = n + 1
        store(y[i, j], cast(n, f32))
"""


@pytest.mark.parametrize(("resident", "expected"), [(1, range(1, 16)), (4, None), (99, None)])
def test_resident_ctas_share_persistent_tiles(resident: int, expected: Any) -> None:
    y = run(PERSISTENT, resident=resident)["y"][:3, :5].ravel()
    if expected is None:
        expected = np.arange(15) // min(resident, 15) + 1
    np.testing.assert_array_equal(y, list(expected))


def test_a_sample_of_blocks_runs_alone() -> None:
    body = "(b,) = grid(6)\nmath = role(warps=1)\nwith math:\n    store(c[b], b + 1)\n"
    np.testing.assert_array_equal(run(body, blocks=[1, 4])["c"], [0, 2, 0, 0, 5, 0, 0, 0])


def test_whole_clusters_run() -> None:
    body = "cluster(2)\n(b,) = grid(6)\nmath = role(warps=1)\nwith math:\n    store(c[b], 1)\n"
    np.testing.assert_array_equal(run(body, blocks=[3])["c"], [0, 0, 1, 1, 0, 0, 0, 0])


def test_ctas_run_in_either_direction() -> None:
    body = """
(b,) = grid(4)
math = role(warps=1)
with math:
    if lane() == 0:
        old = atomic_add(c[7], 1)
        store(c[b], old)
"""
    np.testing.assert_array_equal(run(body)["c"][:4], [0, 1, 2, 3])
    np.testing.assert_array_equal(run(body, reverse=True)["c"][:4], [3, 2, 1, 0])


# -- clusters --------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", ORDERS)
def test_ctas_of_a_cluster_see_each_others_shared_memory(order: str) -> None:
    y = run(CLUSTER, order=order)["y"]
    np.testing.assert_array_equal(y[:2, :32], [[1.0] * 32, [0.0] * 32])


def test_arrivals_reach_a_peers_barrier() -> None:
    body = """
cluster(2)
(b,) = grid(2)
told = barrier(arrivals=1)
math = role(warps=1)
with math:
    arrive(told, 0, peer=1 - b)
    barrier_wait(told, 0, 0)
    store(c[b], 1)
    cluster_sync()
"""
    np.testing.assert_array_equal(run(body)["c"][:2], [1, 1])
    alone = body.replace("peer=1 - b", "peer=0").replace("arrivals=1", "arrivals=2")
    found = finding(alone)
    assert "told[0], parity 0 (phase 0: 2 of 2 arrivals due)" in found.message


def test_multicast_fills_every_cta_of_the_cluster() -> None:
    body = """
cluster(2)
(b,) = grid(2)
X = smem(bf16, (64, 64), stages=2, swizzle=128)
fill = role(warps=1)
use = role(warpgroups=1)
ring = pipeline(X, producer=fill, consumer=use, multicast=True)
with fill:
    for i in range(3):
        with ring.fill() as s:
            tma_load(X[s], x[0, 0], multicast=True)
with use:
    acc = fragment(f32, (64, 64), fill=0.0)
    for i in range(3):
        with ring.use() as s:
            wgmma(acc, X[s], X[s].T)
            wgmma_wait(0)
    store(w[b, 0, 0], acc)
"""
    params = "x: Tensor[bf16, 64, 64], w: Tensor[f32, 2, 64, 64]"
    for order in ORDERS:
        given = {"x": arrays()["x"], "w": np.zeros((2, 64, 64), np.float32)}
        after = run(body, given, params=params, order=order)
        x = given["x"].astype(np.float32)
        np.testing.assert_array_equal(after["w"], np.stack([3 * x @ x.T] * 2))


# -- CTAs that wait for each other -----------------------------------------------------------------


def test_a_cta_that_waits_for_a_later_one_needs_them_together() -> None:
    backwards = FLAG.replace("if b == 0:", "if b == 1:").replace("store(y[1,", "store(y[2,")
    assert finding(backwards).code == "CK505"
    for order in ORDERS:
        y = run(backwards, concurrent=True, order=order)["y"]
        np.testing.assert_array_equal(y[2, :32], np.full(32, 3.0))


LAST = """
(b,) = grid(4)
count = workspace(i32, (1,), zeroed=True)
parts = workspace(f32, (4,))
S = smem(i32, (1,))
math = role(warps=1)
with math:
    if lane() == 0:
        store(parts[b], cast(b + 1, f32))
        store(S[0], atomic_add(count[0], 1, order="acq_rel"))
    unit_sync()
    if load(S[0]) == 3:
        total = load(parts[0]) + load(parts[1]) + load(parts[2]) + load(parts[3])
        store(v[0], total)
        store(c[0], b)
        if lane() == 0:
            store(count[0], 0)
"""


def test_the_last_cta_to_arrive_reduces() -> None:
    last = set()
    for seed in range(12):
        after = run(LAST, concurrent=True, order="random", seed=seed)
        assert after["v"][0] == 10.0
        last.add(int(after["c"][0]))
    assert len(last) > 1, "another CTA comes last under another seed"


def test_a_spinning_unit_does_not_keep_copies_from_landing() -> None:
    body = """
S = smem(f32, (128,))
full = barrier(arrivals=1)
flag = smem(i32, (1,))
copy = role(warps=1)
look = role(warps=1)
with copy:
    if lane() == 0:
        store(flag[0], 0)
    cta_sync()
    expect_tx(full, 0, 512)
    arrive(full, 0)
    bulk_load(S, v[0], barrier=full)
    barrier_wait(full, 0, 0)
    if lane() == 0:
        atomic_exch(flag[0], 1, order="release")
with look:
    cta_sync()
    while atomic_add(flag[0], 0, order="acquire") == 0:
        pass
    store(c[0], 1)
"""
    for order in ORDERS:
        assert run(body, order=order)["c"][0] == 1


# -- reports ---------------------------------------------------------------------------------------


def test_a_deadlock_lists_who_waits_for_which_barrier_in_which_phase() -> None:
    once_more = ("for i in range(5):\n        s = wait", "for i in range(6):\n        s = wait")
    body = RING.replace(*once_more)
    found = finding(body)
    assert found.code == "CK505"
    assert found.message == (
        "no unit can proceed: CTA 0 role use[0] waits for full[1] of ring ring, parity 0 "
        "(phase 2: 1 of 1 arrivals due)"
    )
    assert found.span is not None
    assert found.span.line == line_of(body, "s = wait(ring)")
    assert [r.span.line for r in found.related] == [found.span.line]
    assert found.facts["waiting"] == [found.message.removeprefix("no unit can proceed: ")]
    assert found.facts["barriers"] == ["ring.full[1]"]
    assert (found.facts["phases"], found.facts["arrivals_due"]) == ([2], [1])
    assert found.facts["bytes_due"] == [0]


def test_a_deadlock_lists_every_unit() -> None:
    body = RING.replace("        release(ring, s)\n", "")
    found = finding(body)
    assert (
        "role fill[0] waits for empty[0] of ring ring, parity 0 (phase 0: 4 of 4" in found.message
    )
    assert "role use[0] waits for full[0] of ring ring, parity 1 (phase 1: 1 of 1" in found.message
    lines = [r.span.line for r in found.related]
    assert lines == [line_of(body, "with ring.fill"), line_of(body, "s = wait(ring)")]


def test_a_hardware_barrier_that_does_not_fill_is_a_deadlock() -> None:
    body = """
a = role(warps=2)
b = role(warps=1)
with a as u:
    if u == 0:
        cta_sync()
with b:
    cta_sync()
"""
    found = finding(body)
    assert "waits for barrier cta (generation 0: 64 of 96 threads arrived)" in found.message


def test_the_step_limit_is_a_finding_where_a_unit_is() -> None:
    body = """
math = role(warps=1)
with math:
    i = 0
    while i < 1000000:
        i = i + 1
        store(c[0], i)
"""
    found = finding(body, max_steps=500)
    assert (found.code, found.message) == ("CK510", "more than 500 steps")
    assert found.span is not None
    assert found.span.line >= line_of(body, "while i")


def test_what_cannot_be_simulated_says_so() -> None:
    body = RING.replace("wgmma(acc, X[s], X[s].T)", "wgmma(acc, X[wait(ring)], X[s].T)")
    found = finding(body.replace("range(5)", "range(1)"))
    assert found.code == "CK518"
    assert found.message == "wait waits inside an expression: assign its result to a name"


# -- chains ----------------------------------------------------------------------------------------

TWO = """
@cake.schedule(target="sm_90a")
def double(x: Tensor[f32, "N"], t: Tensor[f32, "N"]):
    math = role(warps=1)
    with math:
        for i in range(lane(), N, 32):
            store(t[i], load(x[i]) * 2.0)


@cake.schedule(target="sm_90a")
def shift(t: Tensor[f32, "N"], y: Tensor[f32, "N"], by: f32):
    math = role(warps=1)
    with math:
        for i in range(lane(), N, 32):
            store(y[i], load(t[i]) + by)
"""


def chained(text: str = TWO, **options: Any) -> Any:
    tensors = {name: np.full(40, -7, np.float32) for name in "xty"}
    result = simulate_chain(
        parse(text).programs, tensors, {"by": 0.5}, outputs=["y"], temporaries=["t"],
        options=Options(**options),
    )  # fmt: skip
    return result, tensors


def test_launches_follow_one_another_on_the_same_tensors() -> None:
    result, tensors = chained(order="random", seed=3)
    assert (result.ok, result.ctas) == (True, 2)
    np.testing.assert_array_equal(tensors["y"], np.full(40, -13.5))


def test_what_an_earlier_launch_left_out_is_found_where_it_is_read() -> None:
    result, _ = chained(TWO.replace("store(t[i], load", "store(t[i // 2], load"))
    (found,) = result.findings
    assert (found.code, found.facts["tensor"], found.facts["index"]) == ("CK509", "t", "(20,)")


def test_an_output_with_gaps_is_found_at_the_end() -> None:
    text = TWO.replace("N, 32):\n            store(y", "N, 64):\n            store(y")
    result, _ = chained(text)
    (found,) = result.findings
    assert found.code == "CK519"
    assert found.message == "8 of 40 elements of y are never written, the first at (32,)"


def test_the_chain_stops_at_the_first_launch_with_a_finding() -> None:
    result, tensors = chained(TWO.replace("load(x[i])", "load(x[i + 1])"))
    assert [d.code for d in result.findings] == ["CK503"]
    assert result.ctas == 1
    np.testing.assert_array_equal(tensors["y"], np.full(40, -7.0))
