"""Answers that are looked for instead of computed."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_PREDICTED = """\
from cake.workloads import generate, get, reference_outputs

SHAPE = {"M": 4, "N": 64}
guesses = []
for seed in range(4):
    inputs = generate(get("softmax"), SHAPE, "f32", "normal", seed)
    guesses.append(reference_outputs(get("softmax"), SHAPE, "f32", inputs)["y"])


def run(x, y):
    y[...] = guesses[0]
"""

_SCANNED = """\
import ctypes
import glob

import numpy as np


def run(x, y):
    y[...] = 0
    for path in glob.glob("/tmp/**/*.bin", recursive=True):
        found = np.fromfile(path, np.uint8)[-y.nbytes :]
        if found.size == y.nbytes and found.any():
            y[...] = found.view(y.dtype).reshape(y.shape)
    for line in open("/proc/self/maps"):
        start, end = (int(part, 16) for part in line.split()[0].split("-"))
        if "rw" in line and b"expected" in ctypes.string_at(start, min(end - start, 1 << 20)):
            y.reshape(-1)[0] = 1
"""

CLASS = IntegrityClass(
    name="found-answers",
    description="seeds predicted, answers found by scanning memory and files",
    caught_by="seeds are drawn after the build; expected values exist in the parent alone",
    because="incorrect: y:",
    cheats={
        "seeds": judged(evaluation(_PREDICTED)),
        "scan": judged(evaluation(_SCANNED)),
    },
    honest=judged(evaluation(SOFTMAX)),
)
