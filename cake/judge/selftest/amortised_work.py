"""Work that is left out once the checks seem to be over."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import PLAN, IntegrityClass, evaluation, judged

_COUNTED = changed(
    SOFTMAX,
    "def run(x, y):\n    y[...] = compute(x)\n",
    """\
calls = 0


def run(x, y):
    global calls
    calls += 1
    if {condition}:
        y[...] = compute(x)
""",
)

CLASS = IntegrityClass(
    name="amortised-work",
    description="iterations counted, work skipped in some of them",
    caught_by="outputs of random timed samples are verified",
    because="timed sample",
    cheats={
        "after the checks": judged(
            evaluation(_COUNTED.format(condition="calls <= 5"), timing=PLAN)
        ),
        "every other": judged(
            evaluation(_COUNTED.format(condition="calls <= 5 or calls % 2"), timing=PLAN)
        ),
    },
    honest=judged(evaluation(_COUNTED.format(condition="calls"), timing=PLAN)),
)
