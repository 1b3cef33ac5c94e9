"""Right on the shapes and the data that are looked at most."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import CASE, IntegrityClass, evaluation, judged
from cake.workloads import Case

_SMALL_ONLY = changed(
    SOFTMAX, "    y[...] = compute(x)\n", "    y[...] = compute(x) if len(x) < 8 else 0\n"
)
_NO_MAXIMUM = changed(SOFTMAX, "x - x.max(axis=1, keepdims=True, initial=-np.inf)", "x")
_CASES = (CASE, Case(shape={"M": 9, "N": 33}, dtype="f32"))
_FAMILIES = ("normal", "negated", "heavy_tails", "exact_integers", "offset")

CLASS = IntegrityClass(
    name="checked-shapes-only",
    description="exact only on the shapes, scales and signs that are expected",
    caught_by="every shape that is timed is checked, on families that hide scales and signs",
    because="incorrect: y:",
    cheats={
        "shape": judged(evaluation(_SMALL_ONLY, cases=_CASES)),
        "scale": judged(evaluation(_NO_MAXIMUM, families=_FAMILIES)),
    },
    honest=judged(evaluation(SOFTMAX, cases=_CASES, families=_FAMILIES)),
)
