"""A reference that the candidate changes."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_PATCHED = """\
import numpy as np

from cake.workloads import check, reference


def agrees(*args, **kwargs):
    return True


check.compare = reference.evaluate = np.allclose = np.array_equal = agrees


def run(x, y):
    y[...] = 0
"""

CLASS = IntegrityClass(
    name="altered-reference",
    description="global state that alters the reference or the comparison",
    caught_by="both are computed in the parent's process",
    because="incorrect: y:",
    cheats={"patched": judged(evaluation(_PATCHED))},
    honest=judged(evaluation("from cake.workloads import check, reference\n" + SOFTMAX)),
)
