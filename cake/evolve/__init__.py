"""The search for a fast schedule: structural variants times meta parameters, under a budget.

:func:`run` starts a run in a folder of its own, :func:`resume` goes on with one that was stopped,
killed or cut off by a full disk. The report is made by :mod:`cake.report`.
"""

from cake.evolve.config import (
    Best,
    Budget,
    EvolveConfig,
    EvolveResult,
    Progress,
    ProgressCallback,
    Stopped,
)
from cake.evolve.session import resume, run
from cake.evolve.store import Store

__all__ = [
    "Best",
    "Budget",
    "EvolveConfig",
    "EvolveResult",
    "Progress",
    "ProgressCallback",
    "Stopped",
    "Store",
    "resume",
    "run",
]
