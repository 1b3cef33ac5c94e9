"""A clock that the candidate stops."""

from cake.judge import judge
from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import PLAN, IntegrityClass, Outcome, Trial, evaluation

_SLEEP_MS = 20.0
_SLOW = changed(SOFTMAX, "def run(x, y):\n", "def run(x, y):\n    sleep(0.02)\n")
_HONEST = "from time import sleep\n" + _SLOW
_STOPPED = """\
import time
from time import sleep

for name in ("perf_counter", "monotonic", "time", "perf_counter_ns", "process_time"):
    setattr(time, name, lambda: 0)
"""


def _timed(text: str, *, patches: bool) -> Trial:
    """Caught: a candidate that patches clocks is measured at its full time all the same."""

    def trial() -> Outcome:
        (timing,) = judge(evaluation(text, timing=PLAN)).timings
        measured = timing.candidate.median
        sees_all = measured >= _SLEEP_MS and timing.status == "passed"
        evidence = f"{measured:.1f} ms measured of {_SLEEP_MS:g} ms and more, by the {timing.clock}"
        return Outcome(caught=sees_all if patches else not sees_all, evidence=evidence)

    return trial


CLASS = IntegrityClass(
    name="patched-clock",
    description="timer functions replaced",
    caught_by="candidates with host code are timed by the parent",
    because="by the parent's clock",
    cheats={"stopped clocks": _timed(_STOPPED + _SLOW, patches=True)},
    timed=True,
    honest=_timed(_HONEST, patches=False),
)
