"""A first cost estimate, from the typed program alone.

:func:`estimate` counts the work of a kernel at concrete dimensions and turns it into time on a
part of the target: see :mod:`cake.cost.model` for the model and its limits.
"""

from cake.cost.machine import Machine, UnknownPart, machine
from cake.cost.model import estimate, estimate_schedule
from cake.cost.occupancy import DoesNotFit, Occupancy, occupancy
from cake.cost.page import estimate_page
from cake.cost.result import Estimate, ScheduleEstimate, Usage
from cake.cost.walk import Site
from cake.cost.work import Work, work_of

__all__ = [
    "DoesNotFit",
    "Estimate",
    "Machine",
    "Occupancy",
    "ScheduleEstimate",
    "Site",
    "UnknownPart",
    "Usage",
    "Work",
    "estimate",
    "estimate_page",
    "estimate_schedule",
    "machine",
    "occupancy",
    "work_of",
]
