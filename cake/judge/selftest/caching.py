"""Results of an earlier call given once more."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import PLAN, IntegrityClass, evaluation, judged

_BY_POINTER = changed(
    SOFTMAX,
    "def run(x, y):\n    y[...] = compute(x)\n",
    """\
seen = {}


def run(x, y):
    key = x.ctypes.data
    if key not in seen:
        seen[key] = compute(x)
    y[...] = seen[key]
""",
)
_PARTLY = changed(
    _BY_POINTER, "    y[...] = seen[key]\n", "    y[0], y[1:] = compute(x)[0], seen[key][1:]\n"
)
_BY_CONTENT = changed(_BY_POINTER, "x.ctypes.data", "x.tobytes()")

CLASS = IntegrityClass(
    name="caching",
    description="results cached by pointer, or renewed in part only",
    caught_by="new contents in every timed call, at pointers that come round",
    because="timed sample",
    cheats={
        "by pointer": judged(evaluation(_BY_POINTER, timing=PLAN)),
        "in part": judged(evaluation(_PARTLY, timing=PLAN)),
    },
    honest=judged(evaluation(_BY_CONTENT, timing=PLAN)),
)
