"""Barriers, fences, raw mbarriers and dependent launch."""

from __future__ import annotations

import numpy as np
import pytest

from cake.ops.barrier_ids import barrier_ids
from tests.ops.schedules import accepted, cuda, finding, message, program, run

OUT = 'out: Tensor[i32, "N"]'


@pytest.mark.parametrize(
    ("body", "decls", "said"),
    [
        ("named_sync(b)", "b = barrier(arrivals=1)", "declared with named_barrier"),
        ("named_sync(nb)", "nb = named_barrier(threads=96)", "counts 96 threads"),
        ("named_arrive(nb)", "nb = named_barrier(threads=130)", "takes whole warps"),
        ("named_sync(nb, 2)", "nb = named_barrier(threads=128, slots=2)", "outside the 2 slots"),
        ("named_sync(nb, lane())", "nb = named_barrier(threads=128)", "the same in all threads"),
        ("cluster_sync()", "", "the schedule has no cluster"),
        ("fence('warp')", "", "scope must be one of cta, cluster, gpu, sys"),
        ("arrive(nb, 0)", "nb = named_barrier(threads=128)", "declared with barrier"),
        ("arrive(b, 2)", "b = barrier(slots=2, arrivals=4)", "slot 2 is outside the 2 slots of b"),
        ("arrive(b, lane())", "b = barrier(slots=2, arrivals=4)", "the same in all threads"),
        ("arrive(b, 0, 2)", "b = barrier(arrivals=4)", "exceed the 4 arrivals of b"),
        ("arrive(b, 0, peer=lane())", "b = barrier(arrivals=4)", "the same in all threads"),
        ("expect_tx(b, 0, 1048576)", "b = barrier(arrivals=4)", "must be in [1, 1048575]"),
        ("barrier_wait(b, 0, 2)", "b = barrier(arrivals=4)", "parity is 0 or 1, got 2"),
        (
            "barrier_wait(b, 0, cast(1, i64))",
            "b = barrier(arrivals=4)",
            "parity must be i32 or u32",
        ),
    ],
)
def test_operands_are_checked(body: str, decls: str, said: str) -> None:
    assert said in message(body, decls, role="warpgroups=1", params=OUT)


@pytest.mark.parametrize(
    ("body", "decls", "said"),
    [
        ("fence_async()", "", "fence_async does not exist on sm_80"),
        ("pdl_wait()", "", "pdl_wait does not exist on sm_80"),
        ("cluster_sync()", "", "cluster_sync does not exist on sm_80"),
        ("fence('cluster')", "", "sm_80 has no clusters"),
        ("expect_tx(b, 0, 16)", "b = barrier(arrivals=1)", "expect_tx does not exist on sm_80"),
        ("arrive(b, 0, 2)", "b = barrier(arrivals=2)", "counts single arrivals only"),
    ],
)
def test_what_ampere_lacks_is_refused(body: str, decls: str, said: str) -> None:
    assert said in message(body, decls, target="sm_80", params=OUT)


ROLES = """
with a as u:
    store(S[u * 32 + lane()], u * 32 + lane())
    named_arrive(nb)
    cta_sync()
with b:
    named_sync(nb)
    store(out[lane()], load(S[lane()]) + load(S[lane() + 32]))
    cta_sync()
    role_sync()
with c as w:
    cta_sync()
    unit_sync()
    role_sync()
"""
DECLS = """
a = role(warps=2)
b = role(warps=1)
c = role(warpgroups=2)
S = smem(i32, (64,))
nb = named_barrier(threads=96)
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_barriers_between_roles_order_their_accesses(order: str) -> None:
    out = np.zeros(32, np.int32)
    run(program(ROLES, DECLS, params=OUT), {"out": out}, order)
    np.testing.assert_array_equal(out, 2 * np.arange(32) + 32)


def test_hardware_barriers_are_numbered_once() -> None:
    made = program(ROLES, DECLS, params=OUT)
    ids = barrier_ids(made)
    assert (dict(ids.named), dict(ids.role), dict(ids.unit)) == ({"nb": 1}, {"c": 2}, {"c": 3})
    assert ids.count == 5
    text = cuda(made)
    assert "barrier_arrive(1, 96);" in text
    assert "barrier_sync(1, 96);" in text
    assert "barrier_sync(0, 352);" in text
    assert "bar_sync(2, 256);" in text
    assert "bar_sync(3 + unit, 128);" in text


TURNS = """
with a as u:
    for k in range(3):
        named_sync(turn, u)
        store(out[k * 2 + u], load(S[0]))
        store(S[0], load(S[0]) + 1)
        named_arrive(turn, 1 - u)
with b:
    store(S[0], 0)
    named_arrive(turn, 0)
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
def test_two_slots_let_units_take_turns(order: str) -> None:
    decls = """
a = role(warps=2)
b = role(warps=1)
S = smem(i32, (1,))
turn = named_barrier(threads=64, slots=2)
"""
    made = program(TURNS, decls, params=OUT)
    out = np.zeros(6, np.int32)
    run(made, {"out": out}, order)
    np.testing.assert_array_equal(out, np.arange(6))
    assert barrier_ids(made).count == 3
    assert "barrier_sync(1 + (" in cuda(made)


def test_a_barrier_that_never_fills_is_a_deadlock() -> None:
    made = accepted("named_sync(nb)", "nb = named_barrier(threads=64)", params=OUT)
    assert "nb[0] (generation 0: 32 of 64 " in finding(made, {"out": np.zeros(1, np.int32)})


PING = """
with a:
    for k in range(4):
        barrier_wait(free, k % 2, (k // 2 + 1) % 2)
        store(S[k % 2, lane()], k * 100 + lane())
        arrive(full, k % 2)
with b:
    for k in range(4):
        barrier_wait(full, k % 2, k // 2 % 2)
        store(out[k * 32 + lane()], load(S[k % 2, lane()]))
        arrive(free, k % 2)
"""
PING_DECLS = """
a = role(warps=1)
b = role({consumer})
S = smem(i32, (2, 32))
full = barrier(slots=2, arrivals=1)
free = barrier(slots=2, arrivals={arrivals})
"""


@pytest.mark.parametrize("order", ["late", "early", "random"])
@pytest.mark.parametrize(("consumer", "arrivals"), [("warps=1", 1), ("warpgroups=1", 4)])
def test_raw_mbarriers_make_a_ring_by_hand(consumer: str, arrivals: int, order: str) -> None:
    decls = PING_DECLS.format(consumer=consumer, arrivals=arrivals)
    made = program(PING, decls, params=OUT)
    out = np.zeros(128, np.int32)
    run(made, {"out": out}, order)
    want = (np.arange(4)[:, None] * 100 + np.arange(32)).ravel()
    np.testing.assert_array_equal(out, want)
    assert "mbarrier.try_wait.parity" in cuda(made)
    old = cuda(program(PING, decls, params=OUT, target="sm_80"))
    assert "mbarrier.test_wait.parity.shared.b64" in old


def test_too_few_arrivals_hang() -> None:
    decls = PING_DECLS.format(consumer="warps=1", arrivals=2)
    made = program(PING, decls, params=OUT)
    found = finding(made, {"out": np.zeros(128, np.int32)})
    assert "free[0]" in found


def test_a_peer_is_told_across_the_cluster() -> None:
    body = """
store(out[m * 32 + lane()], m)
arrive(b, 0, 2, peer=1 - cta_rank())
barrier_wait(b, 0, 0)
cluster_arrive()
cluster_wait()
"""
    decls = "cluster(2)\n(m,) = grid(2)\nb = barrier(arrivals=2)"
    made = accepted(body, decls, params=OUT)
    out = np.full(64, -1, np.int32)
    run(made, {"out": out})
    np.testing.assert_array_equal(out, np.repeat([0, 1], 32))
    text = cuda(made)
    assert "mbar_arrive_remote" in text
    assert "try_wait.parity.acquire.cluster" in text
    assert "barrier.cluster.arrive.release;" in text


@pytest.mark.parametrize("target", ["sm_90a", "sm_100a", "sm_120a"])
def test_fences_and_dependent_launch_compile(target: str) -> None:
    scopes = "fence()\nfence('cta')\nfence('sys')\nfence('cluster')"
    body = f"pdl_wait()\nfence_async()\n{scopes}\npdl_launch()"
    text = cuda(accepted(body, "launch(pdl=True)", params=OUT, target=target))
    for op in ("griddepcontrol.wait;", "griddepcontrol.launch_dependents;", "fence.acq_rel.gpu;",
               "fence.acq_rel.sys;", "fence.proxy.async.shared::cta;"):  # fmt: skip
        assert op in text
