"""mbarriers and hardware barriers on their own."""

import random

import pytest

from cake.simulate.barriers import HardwareBarrier, MBarrierState
from cake.simulate.errors import Finding


def test_a_phase_completes_with_its_last_arrival() -> None:
    bar = MBarrierState("b", 3)
    bar.arrive(2)
    assert (bar.phase, bar.pending) == (0, 1)
    bar.arrive()
    assert (bar.phase, bar.pending) == (1, 3)


def test_a_fresh_barrier_passes_parity_1_and_blocks_parity_0() -> None:
    bar = MBarrierState("b", 1)
    assert bar.passed(1)
    assert not bar.passed(0)
    bar.arrive()
    assert bar.passed(0)
    assert not bar.passed(1)


def test_bytes_keep_a_phase_open_until_all_have_come() -> None:
    bar = MBarrierState("b", 1)
    bar.arrive(tx=96)
    bar.complete_tx(64)
    assert bar.phase == 0
    bar.complete_tx(32)
    assert (bar.phase, bar.tx) == (1, 0)


def test_bytes_may_come_before_they_are_expected() -> None:
    bar = MBarrierState("b", 1)
    bar.complete_tx(64)
    assert bar.phase == 0
    bar.expect_tx(64)
    assert bar.phase == 0, "the arrival is still due"
    bar.arrive()
    assert bar.phase == 1


def test_expecting_bytes_is_no_arrival() -> None:
    bar = MBarrierState("b", 1)
    bar.expect_tx(16)
    bar.complete_tx(16)
    assert bar.phase == 0
    assert bar.describe() == "phase 0: 1 of 1 arrivals due"


def test_more_arrivals_than_a_phase_takes_are_a_finding() -> None:
    bar = MBarrierState("b", 2)
    with pytest.raises(Finding, match="more than 2 arrivals in phase 0") as raised:
        bar.arrive(3)
    assert raised.value.code == "CK507"


@pytest.mark.parametrize("move", ["expect_tx", "complete_tx"])
def test_the_byte_count_has_a_range(move: str) -> None:
    bar = MBarrierState("b", 1)
    getattr(bar, move)(2**20 - 1)
    with pytest.raises(Finding, match="the limit is 1048575"):
        getattr(bar, move)(1)


def test_the_report_names_phase_arrivals_and_bytes() -> None:
    bar = MBarrierState("b", 2)
    bar.arrive(1, tx=48)
    assert bar.describe() == "phase 0: 1 of 2 arrivals due, 48 bytes due"
    bar.complete_tx(64)
    assert bar.describe() == "phase 0: 1 of 2 arrivals due, 16 bytes more than expected"


@pytest.mark.parametrize("seed", range(20))
def test_phases_count_arrivals_and_bytes_in_any_order(seed: int) -> None:
    """However the arrivals and bytes of some phases come, the barrier ends after all of them."""
    rng = random.Random(seed)
    bar = MBarrierState("b", 3)
    for phase in range(5):
        sizes = [16 * rng.randint(1, 9) for _ in range(rng.randint(0, 3))]
        events = [("complete", n) for n in sizes] + [("arrive", 0)] * 2
        rng.shuffle(events)
        # Bytes are expected before the last arrival of the phase.
        events.insert(rng.randint(0, len(events)), ("announce", sum(sizes)))
        for i, (what, n) in enumerate(events):
            assert bar.phase == phase, (events, i)
            if what == "complete":
                bar.complete_tx(n)
            elif what == "arrive":
                bar.arrive()
            else:
                bar.arrive(tx=n)
    assert bar.phase == 5


def test_a_hardware_barrier_counts_generations() -> None:
    bar = HardwareBarrier("nb", 64)
    bar.arrive(1, 32)
    generation = bar.awaited(1)
    assert bar.generation == generation == 0
    bar.arrive(2, 32)
    assert bar.generation == 1
    assert bar.describe() == "generation 1: 0 of 64 threads arrived"


def test_too_many_threads_at_a_hardware_barrier_are_a_finding() -> None:
    bar = HardwareBarrier("nb", 96)
    bar.arrive(1, 64)
    with pytest.raises(Finding, match="gets 128 arrivals, it counts 96"):
        bar.arrive(2, 64)


def test_arrivals_without_waits_are_for_named_barriers_only() -> None:
    named = HardwareBarrier("nb", 32)
    named.arrive(1, 32)
    named.arrive(1, 32)
    assert named.generation == 2
    cluster = HardwareBarrier("cluster", 64, split=True)
    cluster.arrive(1, 32)
    with pytest.raises(Finding, match="twice without waiting"):
        cluster.arrive(1, 32)
