"""Schedules by the thousand: right by construction, or wrong by construction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from benchmarks.verifier import families, more_families, wide_families
from benchmarks.verifier.dress import dressed

MAX_THROWS = 20
"""Throws for each schedule that is asked for, before the families count as used up."""

Family = Callable[[Random, str | None], str]

FAULTS: Mapping[Family, tuple[str, ...]] = {
    families.ring_copy: (
        "no release",
        "use after release",
        "release in some rounds",
        "lag without room",
        "wrong slot",
        "row beyond the tile",
        "no mask",
        "half a mask",
        "producer fills once more",
        "producer stops early",
        "consumer takes once more",
    ),
    families.two_rings: (
        "one ring after the other",
        "one ring is filled half",
        "one ring is never released",
        "released rings are read",
    ),
    families.exchange: (
        "each waits for the other",
        "answer is missing",
        "answer in some rounds",
        "one asks once more",
    ),
    families.products: (
        "lag without room",
        "release before the wait",
        "no wait",
        "accumulator is not started",
        "consumer skips a tile",
        "wrong slot is released",
        "result is read in flight",
    ),
    more_families.async_copies: (
        "overwrites what others read",
        "waits for too few",
        "no barrier",
        "barrier of the warp only",
        "barrier before the wait",
        "no commit",
    ),
    more_families.neighbours: (
        "no first barrier",
        "no second barrier",
        "some warps meet",
        "neighbour beyond the last",
        "barrier expects more",
    ),
    more_families.bulk_stores: (
        "waits for too few",
        "no fence",
        "no barrier",
        "no commit",
        "no wait at the end",
    ),
    more_families.bounded: (
        "vector is not aligned",
        "rows of two CTAs overlap",
        "row == M passes",
        "no row mask",
        "one column too many",
    ),
    more_families.turns: (
        "nobody begins",
        "all begin",
        "turn is not passed on",
        "turn goes to the same warp",
        "all wait for one slot",
        "barrier expects more",
    ),
    wide_families.by_hand: (
        "waits for the wrong phase first",
        "phase of the round",
        "the counter restarts with every tile",
        "announces too little",
        "announces too much",
        "announces late",
        "does not wait for the slot",
        "frees before it reads",
        "never frees",
        "frees too early",
        "waits for more arrivals",
    ),
    wide_families.handover: (
        "does not wait for the slot",
        "waits one round late",
        "signals another slot",
        "barrier expects more",
        "signals before it writes",
        "frees before it reads",
    ),
    wide_families.epilogue: (
        "no wait",
        "waits for too few",
        "no fence",
        "no barrier",
        "barrier before the fence",
        "no commit",
        "no wait at the end",
        "buffers are not turned",
        "all groups use the same buffers",
    ),
    wide_families.peers: (
        "no first barrier",
        "barrier of the CTA only",
        "no second barrier",
        "some CTAs meet",
    ),
    wide_families.aliases: (
        "no barrier between",
        "no barrier at the end of a round",
        "barrier of the warp only",
        "the pool is too small",
        "the first is read too late",
    ),
}
"""What can be wrong with the schedules of each family."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """A generated schedule: its family, its fault (None if it is right) and its text."""

    family: str
    fault: str | None
    text: str


def valid(seed: int) -> Generated:
    """A schedule that is right by construction."""
    r = Random(f"valid {seed}")
    family = r.choice(list(FAULTS))
    return Generated(family=family.__name__, fault=None, text=dressed(r, family(r, None)))


def unsafe(seed: int) -> Generated:
    """A schedule that hangs, races or leaves its bounds by construction."""
    r = Random(f"unsafe {seed}")
    family, fault = r.choice([(f, x) for f, faults in FAULTS.items() for x in faults])
    return Generated(family=family.__name__, fault=fault, text=dressed(r, family(r, fault)))


def different(make: Callable[[int], Generated], count: int) -> list[Generated]:
    """The first ``count`` schedules of different texts, by ascending seeds."""
    found: dict[str, Generated] = {}
    for seed in range(MAX_THROWS * count):
        made = make(seed)
        found.setdefault(made.text, made)
        if len(found) == count:
            break
    return list(found.values())
