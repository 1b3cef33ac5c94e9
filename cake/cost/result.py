"""What an estimate says; :mod:`cake.cost.model` says how it comes about."""

from __future__ import annotations

from dataclasses import dataclass

from cake.cost.occupancy import Occupancy
from cake.cost.walk import Site


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """One resource: ``work`` of the whole kernel in ``unit``, and the time it takes alone.

    ``exposed`` is the time with what other pipes leave uncovered; equal to ``seconds`` for
    everything but the longest pipe.
    """

    name: str
    work: float
    unit: str
    seconds: float
    exposed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """Expected time of one kernel on one part.

    ``bound`` is the critical resource. ``cycles`` and ``seconds`` include the launch. ``waves``
    is CTAs by the device's capacity (tiles by CTAs for a persistent kernel); ``balance`` the mean
    load of an SM by that of the busiest, 1 without a tail. ``is_bound``: the part has no measured
    ceilings, so the time is a lower bound and not a prediction. ``assumptions`` name what the
    estimate could not know.
    """

    kernel: str
    part: str
    cycles: float
    seconds: float
    bound: str
    resources: tuple[Usage, ...]
    occupancy: Occupancy
    ctas: int
    tiles: int
    waves: float
    balance: float
    warps_per_scheduler: float
    is_bound: bool
    calibrated: bool
    assumptions: tuple[str, ...]
    sites: tuple[Site, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleEstimate:
    """Expected time of all kernels of a schedule, one after another."""

    kernels: tuple[Estimate, ...]

    @property
    def seconds(self) -> float:
        return sum(k.seconds for k in self.kernels)

    @property
    def cycles(self) -> float:
        return sum(k.cycles for k in self.kernels)

    @property
    def bound(self) -> str:
        """The critical resource of the longest kernel."""
        return max(self.kernels, key=lambda k: k.seconds).bound

    @property
    def is_bound(self) -> bool:
        return any(k.is_bound for k in self.kernels)
