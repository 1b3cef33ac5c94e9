"""Outputs that need no work."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged


def _filled(value: str) -> str:
    return f"def run(x, y):\n    y[...] = {value}\n"


CLASS = IntegrityClass(
    name="no-work",
    description="zeros, constants, pass-through",
    caught_by="the float64 reference on inputs that are not constant",
    because="incorrect: y:",
    cheats={
        "zeros": judged(evaluation(_filled("0"))),
        "constant": judged(evaluation(_filled("1 / x.shape[1]"))),
        "pass-through": judged(evaluation(_filled("x"))),
    },
    honest=judged(evaluation(SOFTMAX)),
)
