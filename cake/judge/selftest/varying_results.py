"""Results that depend on more than the inputs."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_VARYING = changed(
    SOFTMAX,
    "def run(x, y):\n    y[...] = compute(x)\n",
    """\
calls = 0


def run(x, y):
    global calls
    calls += 1
    y[...] = compute(x)
    y.view(np.int32)[0, 0] += {what}
""",
)

CLASS = IntegrityClass(
    name="varying-results",
    description="right within the tolerance, and different from run to run",
    caught_by="two runs are compared bit by bit where the contract says so",
    because="different from one run to the next",
    cheats={"a rounding": judged(evaluation(_VARYING.format(what="calls % 2")))},
    honest=judged(evaluation(_VARYING.format(what="1"))),
)
