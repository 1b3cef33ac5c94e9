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
import glob
import os

import numpy as np


def run(x, y):
    y[...] = 0
    for path in glob.glob("/proc/[0-9]*/mem"):
        if str(os.getpid()) not in path:
            with open(path, "rb") as memory:
                memory.read(1)
            raise RuntimeError("another process's memory was read")
    for path in glob.glob("/tmp/**/*.npy", recursive=True):
        array = np.load(path)
        if array.nbytes == y.nbytes:
            y[...] = array.view(y.dtype).reshape(y.shape)
"""

CLASS = IntegrityClass(
    name="found-answers",
    description="seeds predicted, answers found by scanning memory and files",
    caught_by="seeds are drawn after the build; expected values exist in the parent alone",
    because="",
    cheats={
        "seeds": judged(evaluation(_PREDICTED)),
        "scan": judged(evaluation(_SCANNED)),
    },
    honest=judged(evaluation(SOFTMAX)),
)
