"""Orders of completion: how early or late asynchronous work lands, and who runs first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

When = Literal["early", "late", "random"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One adversary.

    ``fetch``: when an asynchronous operation reads its sources; ``land``: when it writes its
    destination; ``complete``: when it tells its barrier. ``early`` is at issue, ``late`` is when
    nothing else can run. ``units``: which runnable unit goes next.
    """

    name: str
    fetch: When
    land: When
    complete: When
    units: Literal["first", "last", "random"]


ORDERS: dict[str, Order] = {
    o.name: o
    for o in (
        Order(name="early", fetch="early", land="early", complete="early", units="first"),
        Order(name="late", fetch="late", land="late", complete="late", units="first"),
        Order(name="early-land", fetch="early", land="early", complete="late", units="last"),
        Order(name="late-fetch", fetch="late", land="late", complete="late", units="last"),
        Order(name="random", fetch="random", land="random", complete="random", units="random"),
    )
}
"""The adversaries, by name."""
