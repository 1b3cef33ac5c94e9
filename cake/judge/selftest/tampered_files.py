"""Files and pipes that parent and child share, cut, replaced or put in the way."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_FOUND = """\
import glob
import os

import numpy as np


def files():
    found = []
    for line in open("/proc/self/maps"):
        if line.rstrip().endswith(".bin"):
            found.append(line.split(maxsplit=5)[5].strip())
    return sorted(set(found))


"""
_CUT = (
    _FOUND
    + """\
def run(x, y):
    for path in files():
        os.truncate(path, 0)
"""
)
_REPLACED = (
    _FOUND
    + """\
def run(x, y):
    for path in files():
        os.unlink(path)
        os.symlink("/dev/zero", path)
"""
)

CLASS = IntegrityClass(
    name="tampered-files",
    description="shared files cut short or replaced by links, to bring the judge itself down",
    caught_by="the parent maps nothing, follows no links, and checks kinds and sizes",
    because={"cut": "tampered with its files", "replaced": "never written"},
    cheats={"cut": judged(evaluation(_CUT)), "replaced": judged(evaluation(_REPLACED))},
    honest=judged(evaluation(_FOUND + SOFTMAX + "    assert len(files()) in (2, 4)\n")),
)
