"""Accesses beside the tensors."""

from cake.judge.selftest.sources import SOFTMAX
from cake.judge.selftest.twins import IntegrityClass, evaluation, judged

_SET = (
    "import ctypes\n"
    + SOFTMAX
    + "    ctypes.memset(y.ctypes.data + y.nbytes - 4 + {shift}, 0, 4)\n"
)
_BEHIND = _SET.format(shift=64)
_INSIDE = _SET.format(shift=0) + "    y[...] = compute(x)\n"
_READ = (
    "import ctypes\n"
    + SOFTMAX
    + "    behind = ctypes.string_at(x.ctypes.data + x.nbytes, 4)\n"
    + "    y += np.frombuffer(behind, np.float32)[0] * 0\n"
)

CLASS = IntegrityClass(
    name="out-of-bounds",
    description="reads and writes beside a tensor",
    caught_by="guards of poison around every tensor, NaN in one run and a number in the other",
    because="incorrect: y:",
    cheats={"write": judged(evaluation(_BEHIND)), "read": judged(evaluation(_READ))},
    honest=judged(evaluation(_INSIDE)),
)
