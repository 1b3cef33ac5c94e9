"""Work that goes on after the call has returned."""

from cake.judge.selftest.sources import SOFTMAX, changed
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_LATE = """\
import threading
import time


def late(x, y):
    time.sleep(0.05)
    y[...] = compute(x)


def run(x, y):
    worker = threading.Thread(target=late, args=(x, y))
    worker.start()
"""
_THREADED = changed(SOFTMAX, "def run(x, y):\n    y[...] = compute(x)\n", _LATE)

CLASS = IntegrityClass(
    name="deferred-work",
    description="work on a side stream or thread, lazy results",
    caught_by="the outputs are read the moment the call has returned",
    because="never written",
    cheats={"thread": judged(evaluation(_THREADED))},
    honest=judged(evaluation(_THREADED + "    worker.join()\n")),
)
