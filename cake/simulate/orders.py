"""Orders of completion: how early or late asynchronous work lands, and who runs first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

When = Literal["early", "late", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One adversary.

    ``fetch``: when an asynchronous operation reads its sources; ``land``: when it writes its
    destination; ``complete``: when it tells its barrier. ``early`` is at issue, ``late`` is when a
    unit waits for it or nothing else can run. ``pick``: which operation completes where several
    may. ``units``: which runnable unit goes next; ``turns`` changes after every access to memory,
    ``first`` and ``last`` run one unit until it has to wait. ``delayed``: who runs only when nobody
    else can: one unit or all units of one CTA, drawn by the seed, or the roles that start no copies
    into shared memory.
    ``reverse``: CTAs in descending order.
    """

    name: str
    fetch: When
    land: When
    complete: When
    pick: Literal["oldest", "newest", "random"]
    units: Literal["first", "last", "turns", "random"]
    delayed: Literal["unit", "cta", "consumers"] | None = None
    reverse: bool = False

    @property
    def draws(self) -> bool:
        """Whether runs with different seeds may differ."""
        drawn = "random" in (self.fetch, self.land, self.complete, self.pick, self.units)
        return drawn or self.delayed in ("unit", "cta")


ORDERS: dict[str, Order] = {
    o.name: o
    for o in (
        Order(
            name="early", fetch="early", land="early", complete="early", pick="oldest",
            units="turns",
        ),
        Order(
            name="late", fetch="late", land="late", complete="late", pick="oldest", units="first"
        ),
        Order(
            name="late-newest", fetch="late", land="late", complete="late", pick="newest",
            units="last",
        ),
        Order(
            name="early-land", fetch="early", land="early", complete="late", pick="newest",
            units="last",
        ),
        Order(
            name="late-land", fetch="early", land="late", complete="late", pick="newest",
            units="last",
        ),
        Order(
            name="slow-unit", fetch="early", land="early", complete="early", pick="oldest",
            units="first", delayed="unit",
        ),
        Order(
            name="eager-producer", fetch="early", land="early", complete="early", pick="oldest",
            units="first", delayed="consumers",
        ),
        Order(
            name="delayed-peer", fetch="early", land="early", complete="early", pick="oldest",
            units="first", delayed="cta",
        ),
        Order(
            name="reversed", fetch="late", land="late", complete="late", pick="oldest",
            units="first", reverse=True,
        ),
        Order(
            name="random", fetch="random", land="random", complete="random", pick="random",
            units="random",
        ),
    )
}  # fmt: skip
"""The adversaries, by name."""
