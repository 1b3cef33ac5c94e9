"""The child process of a search: answers tasks, one JSON line each, until its input ends.

Started as ``python -m cake.evolve.worker``. The first line is the setting of the run.
"""

from __future__ import annotations

import ctypes
import json
import os
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from cake.evolve.evaluate import Examined, Screened, confirm, examine, screen
from cake.evolve.setting import Setting
from cake.evolve.space import Point

MEMORY_BYTES = 8 << 30
TRACE_CHARACTERS = 4000
PR_SET_PDEATHSIG = 1  # linux/prctl.h

_TASKS: dict[str, Callable[[Setting, Point], Screened | Examined]] = {
    "screen": screen,
    "examine": examine,
    "confirm": confirm,
}


def perform(setting: Setting, task: dict[str, Any]) -> dict[str, Any]:
    """The answer to one task (``kind`` and a list of ``points``): ``results`` for the points, or
    a ``failure``, which is a fault of CAKE that one candidate has brought to light."""
    work = _TASKS[task["kind"]]
    try:
        return {"results": [asdict(work(setting, Point(**point))) for point in task["points"]]}
    except Exception:
        return {"failure": traceback.format_exc()[-TRACE_CHARACTERS:]}


def _restrain() -> None:
    """No life beyond the parent's, no core files, and no more memory than a candidate may need."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    """Serve the parent. What anything prints goes to standard error; answers have a pipe."""
    _restrain()
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w", encoding="utf-8")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    setting = Setting.from_json(sys.stdin.readline())
    for line in sys.stdin:
        answers.write(json.dumps(perform(setting, json.loads(line))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
