"""Long walks over tiles, and when they may end early."""

from __future__ import annotations

from itertools import pairwise

from cake.lang.elaborate import parse
from cake.verify.phase.expand import Expander
from cake.verify.phase.outcome import Outcome
from cake.verify.phase.run import run
from cake.verify.phase.scenarios import Chooser, Scenarios
from cake.verify.phase.walk import Cta
from tests.verify_phase.schedules import GEMM, RAW, checked, edited, line

TURNING = "            e = 1 - e\n"
STILL = edited(GEMM, ("E[e]", "E[0]"), (TURNING, ""), ("tma_store_wait(1)", "tma_store_wait(0)"))
"""One store buffer, so that no tile differs from the one before."""

ONE_STEP_A_TILE = """
@cake.schedule(target="sm_90a")
def kernel(x: Tensor[f32, "M", 32], y: Tensor[f32, "M", 32]):
    tiles = persistent(M)
    X = smem(f32, (1, 32), stages=3)
    copier = role(warps=1)
    adder = role(warps=1)
    full = barrier(slots=3, arrivals=1)
    free = barrier(slots=3, arrivals=1)
    with copier:
        n = 0
        for (m,) in tiles:
            s = n % 3
            barrier_wait(free, s, (n // 3 + 1) % 2)
            expect_tx(full, s, 128)
            tma_load(X[s], x[m, 0], barrier=full, slot=s)
            arrive(full, s)
            n = n + 1
    with adder:
        n = 0
        for (m,) in tiles:
            s = n % 3
            barrier_wait(full, s, n // 3 % 2)
            v = load(X[s][0, lane()])
            arrive(free, s)
            store(y[m, lane()], v)
            n = n + 1
"""


def expander(text: str) -> Expander:
    (program,) = parse(text, "example.py").programs
    return Expander(program)


def walked(made: Expander, tiles: int, trips: int) -> Outcome:
    """A run of the GEMM over so many tiles of so many K slices."""
    sizes = {"M": 64 * tiles, "K": 64 * trips}
    cta = Cta(rank=0, values=sizes, tiles=tuple((m,) for m in range(tiles)))
    outcome = run(made.expand([cta], Chooser([1])))
    assert outcome.clean
    return outcome


def test_a_regular_loop_becomes_steady_and_stays_so() -> None:
    made = expander(STILL)
    assert made.regular
    for trips in (1, 2, 4, 7):
        steady = [walked(made, tiles, trips).steady for tiles in range(1, 12)]
        assert not steady[0]
        assert steady[-1]
        assert all(later for now, later in pairwise(steady) if now), (trips, steady)


def test_what_is_carried_from_tile_to_tile_makes_a_loop_irregular() -> None:
    assert not expander(GEMM).regular
    assert not expander(RAW).regular
    assert expander(edited(GEMM, ("E[e]", "E[0]"))).regular


def test_steps_of_one_tile_each_are_followed_round_their_ring() -> None:
    """Three slots and a parity that is right once: it takes seven tiles to show."""
    assert checked(ONE_STEP_A_TILE) == ((), ())
    text = edited(ONE_STEP_A_TILE, ("(n // 3 + 1) % 2", "1 - min(n // 3, 1)"))
    diagnostics, _ = checked(text)
    assert [d.code for d in diagnostics] == ["CK456"]
    assert "expect_tx" in line(text, diagnostics[0])
    assert diagnostics[0].facts["tiles"] == 7


def test_long_walks_come_last_and_are_few() -> None:
    tiles = [s.tiles for s in Scenarios(expander(ONE_STEP_A_TILE)).all()]
    assert tiles == [1, 2, 3, 4, 7]
