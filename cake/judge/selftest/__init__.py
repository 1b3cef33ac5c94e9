"""The judge judged: for every class of cheating and of accident, twins.

A cheating twin has to be caught, for the reason that its class names; the honest twin, which does
nearly the same for a good reason, has to pass. One file per class; `cake selftest` runs them all.
"""

from cake.judge.selftest.catalogue import classes
from cake.judge.selftest.twins import IntegrityClass, Report, run

__all__ = ["IntegrityClass", "Report", "classes", "run"]
