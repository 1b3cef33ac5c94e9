"""Outputs that are left as they were found."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_LAST = changed(SOFTMAX, "y[...] = compute(x)", "y[:-1] = compute(x)[:-1]")
_ONE = changed(SOFTMAX, "y[...] = compute(x)", "y.reshape(-1)[:-1] = compute(x).reshape(-1)[:-1]")
_TWICE = changed(SOFTMAX, "y[...] = compute(x)", "y[:-1] = 0\n    y[...] = compute(x)")

CLASS = IntegrityClass(
    name="partial-outputs",
    description="stale or partly written outputs",
    caught_by="two runs that start from different poison",
    because="never written",
    cheats={"a row": judged(evaluation(_LAST)), "an element": judged(evaluation(_ONE))},
    honest=judged(evaluation(_TWICE)),
)
