"""A search in a process of its own, to be killed or interrupted: ``python session.py FOLDER``.

Prints one line for each progress step, and at the end how it stopped.
"""

import sys
from pathlib import Path

from cake.evolve import Progress, run
from tests.evolve.samples import config


def show(step: Progress) -> None:
    print(step.phase, step.done, flush=True)


if __name__ == "__main__":
    result = run(config(Path(sys.argv[1]), keep=1.0), progress=show)
    print("stopped", result.stopped, result.message, flush=True)
