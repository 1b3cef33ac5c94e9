"""A/A runs of the judge: how often the interval of a thing beside itself contains 1.

    python -m benchmarks.judge_noise [--out FILE] [--commit HASH]

Torch's kernel stands on both sides of forty rows, called in the same way. Needs torch and a GPU.
Ends with 1 if fewer than 95 % of the intervals contain 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cake.judge import Candidate, Evaluation, TimingPlan, judge
from cake.workloads import Case

WANTED = 0.95
_TORCH = Candidate(runner="baseline", entry="torch")
SIZES = (512, 1024, 1536, 2048, 3072)
ROWS: dict[str, list[Case]] = {
    "rmsnorm": [Case(shape={"M": m, "D": d}, dtype="bf16") for m in SIZES for d in (1024, 2048)],
    "softmax": [Case(shape={"M": m, "N": n}, dtype="bf16") for m in SIZES for n in (1024, 2048)],
    "gemm": [
        Case(shape={"M": m, "N": n, "K": 1024}, dtype="bf16") for m in SIZES for n in (1024, 2048)
    ],
    "attention": [
        Case(
            shape={"B": 1, "H": 8, "Hkv": 8, "Lq": length, "Lk": length, "D": depth, "causal": 1},
            dtype="bf16",
        )
        for length in (256, 512, 768, 1024, 1536)
        for depth in (64, 128)
    ],
}


def rows(workload: str, cases: list[Case]) -> Iterator[dict[str, Any]]:
    """One row per case, with the interval of torch beside torch."""
    verdict = judge(
        Evaluation(
            workload=workload,
            candidate=_TORCH,
            cases=tuple(cases),
            device="cuda",
            families=("normal",),
            max_rows=64,
            timing=TimingPlan(rival=_TORCH, samples=60, checked=0),
        )
    )
    if verdict.status != "passed":
        print(f"{workload}: {verdict.status}: {verdict.detail}", flush=True)
    for timing in verdict.timings:
        assert timing.ratio is not None
        yield {
            "row": f"{workload} {timing.case.label()}",
            "ms": timing.candidate.median,
            "ratio": timing.ratio.ratio,
            "low": timing.ratio.low,
            "high": timing.ratio.high,
            "contains_one": timing.ratio.contains(1.0),
            "clock": timing.clock,
            "seconds": verdict.seconds,
        }


def main() -> int:
    """Measure all rows and say how many intervals contain 1."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    found = []
    for workload, cases in ROWS.items():
        for row in rows(workload, cases):
            found.append(row)
            print(
                f"{row['row']:48} {row['ms']:.4f} ms  {row['ratio']:.4f} "
                f"({row['low']:.4f} to {row['high']:.4f})  "
                f"{'contains 1' if row['contains_one'] else 'DOES NOT CONTAIN 1'}",
                flush=True,
            )
    hits = sum(row["contains_one"] for row in found)
    print(f"{hits} of {len(found)} intervals contain 1, by {found[0]['clock'] if found else '-'}")
    if options.out:
        document = {"commit": options.commit, "hits": hits, "rows": found}
        options.out.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if found and hits >= WANTED * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
