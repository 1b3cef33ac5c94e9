"""How long the verifier takes, layer by layer, for every shipped schedule.

    python -m benchmarks.verify_speed [--out docs/perf/verify_speed.json] [--commit HASH]

Milliseconds of processor time of a process that has verified something else before, the least of
several runs; a file's programs together. Parsing is a column of its own.
"""

from __future__ import annotations

import argparse
import datetime
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from cake.kernels import ScheduleFile, elaborate, schedules
from cake.targets import names
from cake.verify import LAYERS, RULES, verify
from cake.workloads import names as workloads

RUNS = 3
STEPS = {"rules": RULES, "rules_and_phases": (*RULES, "L2"), "all": LAYERS}


def files() -> Iterator[tuple[str, ScheduleFile]]:
    """Every shipped file once, for the target in its name."""
    for workload in workloads():
        for target in names():
            for file in schedules(workload, target):
                if file.written_for == target:
                    yield workload, file


def least(call: Callable[[], object]) -> float:
    """Milliseconds of processor time of the quickest run."""
    times = []
    for _ in range(RUNS):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return round(min(times) * 1e3, 1)


def row(workload: str, file: ScheduleFile) -> dict[str, Any]:
    """The figures of one file."""
    programs = elaborate(file).programs
    verdicts = [verify(p).status for p in programs]
    found: dict[str, Any] = {"schedule": f"{workload}/{file.name}", "verdicts": verdicts}
    found["parse_ms"] = least(lambda: elaborate(file))
    for name, layers in STEPS.items():
        found[f"{name}_ms"] = least(
            lambda layers=layers: [verify(p, layers=layers) for p in programs]
        )
    return found


def main() -> None:
    """Measure, print a table, and write it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    rows = []
    for workload, file in files():
        rows.append(row(workload, file))
        print("  ".join(str(value) for value in rows[-1].values()), flush=True)
    if options.out:
        about = {
            "command": "python -m benchmarks.verify_speed",
            "unit": "processor time, least of runs",
            "runs": RUNS,
            "commit": options.commit,
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        }
        options.out.write_text(json.dumps({**about, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
