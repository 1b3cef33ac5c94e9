"""Measure the shipped schedules beside their baselines and write docs/perf/results.json.

    python -m benchmarks.h200 [CASE ...] [--out FILE] [--commit HASH] [--meta NAME=VALUE ...]

Ours and the baseline are interleaved, cold L2, CUDA events, medians; every result is checked first.
"""

from __future__ import annotations

import argparse
import datetime
import json
import sys
import time
import traceback
from pathlib import Path
from typing import Any

import torch

from benchmarks import attention_knn, cases, kda
from benchmarks.cases import Case
from benchmarks.chain import Chain
from benchmarks.timing import interleaved, median

CASES = (*cases.CASES, *attention_knn.CASES, *kda.CASES)
REST_SECONDS = 0.5
"""Idle before each case: a hot card steps its clocks down, for both sides but not equally."""
WARM_SECONDS = 0.3
"""Work before the samples of a short case: an idle card needs time to raise its clocks."""
SHORT_MS = 0.1


def measure(case: Case, samples: int, commit: str, meta: dict[str, Any]) -> dict[str, Any]:
    """One row; prints it."""
    chain = Chain(case.schedule, case.elaborated_for, **{**case.meta, **meta})
    prepared = case.prepare(chain, case.shape)
    error, good = prepared.check()
    torch.cuda.synchronize()
    calls = {"ours": prepared.ours, "base": prepared.baseline}
    time.sleep(REST_SECONDS)
    if median(interleaved({"ours": prepared.ours}, samples=3)["ours"]) < SHORT_MS:
        end = time.monotonic() + WARM_SECONDS
        while time.monotonic() < end:
            interleaved(calls, samples=10, warmup=1)
    times = interleaved(calls, samples=samples)
    ours, base = median(times["ours"]), median(times["base"])
    verdict = "right" if good else "WRONG"
    print(
        f"{case.name:16} ours {ours:.4f} ms  {case.baseline} {base:.4f} ms  ratio {base / ours:.3f}"
        f"  {verdict} ({error:.1e})  asked: {case.target or '-'}  {'; '.join(chain.logs)}",
        flush=True,
    )
    return {
        "name": case.name,
        "workload": case.workload,
        "schedule": case.schedule,
        "shape": dict(case.shape),
        "dtype": "bf16",
        "meta": {**case.meta, **meta},
        "ours_ms": round(ours, 5),
        "baseline": case.baseline,
        "baseline_ms": round(base, 5),
        "ratio": round(base / ours, 4),
        "correct": good,
        "error": error,
        "target": case.target,
        "method": "CUDA events, cold L2, interleaved, median",
        "samples": samples,
        "device": torch.cuda.get_device_name(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "commit": commit,
        "command": f"python -m benchmarks.h200 {case.name}",
    }


def main() -> int:
    """Measure the chosen cases (default: all)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cases", nargs="*", default=[c.name for c in CASES])
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--samples", type=int, default=30)
    parser.add_argument("--meta", action="append", default=[])
    options = parser.parse_args()
    meta = {name: int(value) for name, value in (m.split("=") for m in options.meta)}
    rows, failed = [], 0
    for case in CASES:
        if case.name not in options.cases:
            continue
        try:
            rows.append(measure(case, options.samples, options.commit, meta))
            failed += not rows[-1]["correct"]
        except Exception:
            failed += 1
            print(f"{case.name} failed", flush=True)
            traceback.print_exc(limit=6, file=sys.stdout)
    if options.out:
        options.out.write_text(json.dumps(rows, indent=1) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
