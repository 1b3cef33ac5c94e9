"""Inputs that serve as scratch memory."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_IN_PLACE = changed(
    SOFTMAX, "y[...] = compute(x)", "x -= x.max(axis=1, keepdims=True)\n    y[...] = compute(x)"
)
_COPIED = changed(_IN_PLACE, "x -= x.max", "x = x - x.max")

CLASS = IntegrityClass(
    name="modified-inputs",
    description="inputs modified",
    caught_by="inputs are compared byte for byte after every checked run",
    because="an input was modified",
    cheats={"in place": judged(evaluation(_IN_PLACE))},
    honest=judged(evaluation(_COPIED)),
)
