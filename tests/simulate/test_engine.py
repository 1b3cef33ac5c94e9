"""Asynchronous operations: what the orders allow, groups, and what a unit knows of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import pytest

from cake.ir.nodes import Node
from cake.simulate import ORDERS
from cake.simulate.barriers import MBarrierState
from cake.simulate.engine import Engine, Operation
from cake.simulate.errors import Finding


@dataclass
class Log:
    """Issues operations that write down what happens to them."""

    engine: Engine
    identity: int = 1
    events: list[str] = field(default_factory=list)

    def locate(self, finding: Finding, place: Node | None) -> Finding:
        return finding

    def start(self, name: str, kind: Any = "mbarrier", **options: Any) -> Operation:
        op = Operation(
            kind=kind,
            issuer=self,
            place=None,
            fetch=lambda: self.events.append(f"fetch {name}"),
            land=lambda value: self.events.append(f"land {name}"),
            **options,
        )
        self.engine.issue(op)
        return op


def log(order: str, seed: int = 0) -> Log:
    return Log(Engine(ORDERS[order], Random(seed)))


def test_early_completes_at_the_issue() -> None:
    a, bar = log("early"), MBarrierState("b", 1)
    bar.arrive(tx=64)
    a.start("a", barriers=[bar], tx=64)
    assert a.events == ["fetch a", "land a"]
    assert bar.phase == 1
    assert not a.engine.step()


def test_early_land_tells_the_barrier_late() -> None:
    a, bar = log("early-land"), MBarrierState("b", 1)
    bar.arrive(tx=64)
    a.start("a", barriers=[bar], tx=64)
    assert a.events == ["fetch a", "land a"]
    assert bar.phase == 0
    assert a.engine.step()
    assert bar.phase == 1


@pytest.mark.parametrize(("order", "first"), [("late", "a"), ("late-newest", "b")])
def test_late_waits_until_nothing_else_can_run(order: str, first: str) -> None:
    a = log(order)
    a.start("a")
    a.start("b")
    assert a.events == []
    a.engine.step()
    assert a.events == [f"fetch {first}", f"land {first}"]


@pytest.mark.parametrize("order", ORDERS)
def test_products_of_a_unit_land_in_issue_order(order: str) -> None:
    a = log(order)
    for name in "abc":
        a.start(name, "wgmma")
    while a.engine.step():
        pass
    assert [e for e in a.events if e.startswith("land")] == ["land a", "land b", "land c"]


def test_copies_of_a_unit_may_land_in_any_order() -> None:
    seen = set()
    for seed in range(20):
        a = log("random", seed)
        a.start("a", "cp_async")
        a.start("b", "cp_async")
        while a.engine.step():
            pass
        seen.add(tuple(e for e in a.events if e.startswith("land")))
    assert seen == {("land a", "land b"), ("land b", "land a")}


def test_a_wait_finishes_all_but_the_newest_groups() -> None:
    a = log("late")
    for name in "abc":
        a.start(name, "cp_async")
        a.engine.commit(1, "cp_async")
    a.engine.drain(1, "cp_async", 1, reads_only=False)
    assert a.events == ["fetch a", "land a", "fetch b", "land b"]


def test_what_is_not_committed_is_not_waited_for() -> None:
    a = log("late")
    a.start("a", "bulk_group")
    a.engine.drain(1, "bulk_group", 0, reads_only=False)
    assert a.events == []


def test_a_wait_for_reads_leaves_the_writes_in_flight() -> None:
    a = log("late")
    a.start("a", "bulk_group")
    a.engine.commit(1, "bulk_group")
    assert a.engine.left_by(1) is not None
    a.engine.drain(1, "bulk_group", 0, reads_only=True)
    assert a.events == ["fetch a"]
    assert a.engine.left_by(1) is None
    a.engine.drain(1, "bulk_group", 0, reads_only=False)
    assert a.events == ["fetch a", "land a"]


def test_empty_groups_count() -> None:
    a = log("late")
    a.start("a", "cp_async")
    a.engine.commit(1, "cp_async")
    a.engine.commit(1, "cp_async")
    a.engine.drain(1, "cp_async", 1, reads_only=False)
    assert a.events == ["fetch a", "land a"]


def test_groups_belong_to_a_unit() -> None:
    a = log("late")
    a.start("a", "cp_async")
    a.engine.commit(1, "cp_async")
    a.engine.drain(2, "cp_async", 0, reads_only=False)
    assert a.events == []


@pytest.mark.parametrize("order", ORDERS)
def test_a_signal_comes_after_everything_before_it(order: str) -> None:
    a, bar = log(order), MBarrierState("b", 32)
    copies = [a.start(name, "cp_async") for name in "ab"]
    signal = Operation(
        kind="cp_async", issuer=a, place=None, fetch=lambda: None, land=lambda v: None,
        barriers=[bar], arrivals=32,
    )  # fmt: skip
    a.engine.signal(signal)
    while a.engine.step():
        if bar.phase:
            break
    assert bar.phase == 1
    assert {"land a", "land b"} <= set(a.events)
    assert all(op.known for op in copies), "the barrier tells of them"


@pytest.mark.parametrize("order", ORDERS)
def test_work_is_known_by_a_wait_and_not_by_its_end(order: str) -> None:
    """A right program does not rely on how early an order is."""
    a = log(order)
    op = a.start("a", "wgmma")
    a.engine.commit(1, "wgmma")
    while a.engine.step():
        pass
    assert not op.known
    a.engine.drain(1, "wgmma", 0, reads_only=False)
    assert op.known


def test_every_order_has_its_name_and_they_differ() -> None:
    assert [o.name for o in ORDERS.values()] == list(ORDERS)
    assert len({replace(o, name="") for o in ORDERS.values()}) == len(ORDERS)
