"""What each adversary shows that milder orders hide."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cake.simulate import ORDERS, simulate
from cake.simulate.engine import Engine
from tests.simulate.programs import arrays, finding, program, run
from tests.simulate.right_schedules import BLOCK, CLUSTER
from tests.simulate.test_engine import Log

UNFENCED = BLOCK.replace("    cta_sync()\n", "")
"""Warps read each other's values, each as soon as it likes."""
UNMET = CLUSTER.replace("    cluster_arrive()\n    cluster_wait()\n", "")
"""CTAs read each other's values likewise."""
OVERWRITTEN = """
S = smem(f32, (32,))
full = barrier(slots=2, arrivals=1)
use = role(warps=1)
fill = role(warps=1)
with fill:
    for i in range(2):
        expect_tx(full, i, 128)
        arrive(full, i)
        bulk_load(S, v[i * 32], barrier=full, slot=i)
with use:
    for i in range(2):
        barrier_wait(full, i, 0)
        store(y[i, lane()], load(S[lane()]))
"""
"""The producer never waits for the consumer to have read."""
FIRST = """
(b,) = grid(3)
math = role(warps=1)
with math:
    if lane() == 0:
        if atomic_add(c[0], 1) == 0:
            store(c[1], b)
"""
"""The CTA that comes first leaves its number."""


@pytest.mark.parametrize("seed", range(4))
def test_a_slow_unit_has_not_stored_what_the_others_read(seed: int) -> None:
    found = finding(UNFENCED, order="slow-unit", seed=seed)
    assert found.code in ("CK501", "CK514")


def test_every_unit_is_the_slow_one_under_some_seed() -> None:
    body = """
math = role(warps=4)
with math as u:
    if lane() == 0:
        store(c[atomic_add(c[7], 1)], u)
"""
    last = {int(run(body, order="slow-unit", seed=seed)["c"][3]) for seed in range(16)}
    assert last == {0, 1, 2, 3}


def test_a_delayed_cta_has_not_stored_what_its_peer_reads() -> None:
    found = [finding(UNMET, order="delayed-peer", seed=seed) for seed in range(8)]
    assert {d.code for d in found} == {"CK501"}
    assert {d.facts["cta"] for d in found} == {0, 1}, "each of the two was delayed"


def test_an_eager_producer_overwrites_what_nobody_has_read() -> None:
    first, second = np.arange(32), np.arange(32, 64)
    early, eager = (run(OVERWRITTEN, order=o)["y"] for o in ("early", "eager-producer"))
    np.testing.assert_array_equal(early[0, :32], first)
    np.testing.assert_array_equal(eager[0, :32], second)


def test_ctas_run_in_descending_order() -> None:
    assert run(FIRST, order="late")["c"][1] == 0
    assert run(FIRST, order="reversed")["c"][1] == 2


def test_late_land_reads_at_the_issue_and_writes_at_the_completion() -> None:
    log = Log(Engine(ORDERS["late-land"], Random(0)))
    log.start("a")
    assert log.events == ["fetch a"]
    assert log.engine.step()
    assert log.events == ["fetch a", "land a"]


@pytest.mark.parametrize("order", ORDERS)
def test_a_right_schedule_has_no_finding(order: str) -> None:
    made = program(CLUSTER)
    for seed in range(3):
        assert simulate(made, arrays(), order=order, seed=seed).ok
