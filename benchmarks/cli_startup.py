"""How long the command line takes to start, against its limits.

``python benchmarks/cli_startup.py`` prints one row for each and ends with 1 if a limit is missed.
Every figure is the least of several runs, each in a fresh process, and the check is timed in CPU
time of its one thread: that is what the code costs, the rest is what the machine does beside it.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
RUNS = 5

IMPORT_LIMIT_S = 0.3
HELP_LIMIT_S = 0.5
QUICK_LIMIT_S = 0.1
CHECK_LIMIT_S = 2.0

_TIME_IMPORT = """
import time
start = time.perf_counter()
import cake
print(time.perf_counter() - start)
"""

_TIME_CHECK = """
import sys, time
from pathlib import Path
from cake.lang.elaborate import parse
from cake.verify import LAYERS, RULES, verify
text = Path(sys.argv[1]).read_text()
start = time.process_time()
for program in parse(text, sys.argv[1]).programs:
    verify(program, layers=RULES if sys.argv[2] == "quick" else LAYERS)
print(time.process_time() - start)
"""


def printed(*command: str) -> float:
    """The seconds that a fresh Python process prints, the least of several runs."""
    return min(float(_run(sys.executable, "-c", *command)) for _ in range(RUNS))


def wall(*command: str) -> float:
    """Wall time of a command from start to end, the least of several runs."""
    times = []
    for _ in range(RUNS):
        start = time.perf_counter()
        _run(*command)
        times.append(time.perf_counter() - start)
    return min(times)


def _run(*command: str) -> str:
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


def rows() -> Iterator[tuple[str, float, float]]:
    """What is measured, its seconds, its limit in seconds."""
    yield "import cake", printed(_TIME_IMPORT), IMPORT_LIMIT_S
    yield "cake --help", wall(sys.executable, "-m", "cake.cli", "--help"), HELP_LIMIT_S
    for path in sorted((ROOT / "cake" / "kernels").glob("*/sm_*.py")):
        name = path.relative_to(ROOT / "cake" / "kernels")
        for how, limit in (("quick", QUICK_LIMIT_S), ("all", CHECK_LIMIT_S)):
            yield f"check {name}, {how}, after import", printed(_TIME_CHECK, str(path), how), limit


def main() -> int:
    """Print the table; 1 if a limit is missed."""
    missed = 0
    for what, seconds, limit in rows():
        late = seconds > limit
        missed += late
        mark = "  TOO SLOW" if late else ""
        print(f"{what:<48} {seconds * 1e3:8.1f} ms  limit {limit * 1e3:5.0f} ms{mark}", flush=True)
    return int(missed > 0)


if __name__ == "__main__":
    sys.exit(main())
