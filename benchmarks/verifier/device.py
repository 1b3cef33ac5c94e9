"""Mutants on the GPU.

``python -m benchmarks.verifier.device --out FILE --page docs/verifier.md``

A sample of mutants that the layers kill, and one of mutants that are accepted and alive, each in a
child process under a watchdog. A killed one may hang, give wrong results, end with an error of the
device, or come out right by luck; an accepted one must be right.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks.verifier.data_operators import operator
from benchmarks.verifier.judge import Fate, judge
from benchmarks.verifier.mutants import Mutant, mutants, sample
from benchmarks.verifier.page import write_device
from benchmarks.verifier.provenance import provenance
from benchmarks.verifier.subjects import subject, subjects

Record = dict[str, Any]

CHILD = (sys.executable, "-m", "benchmarks.verifier.device_child")
TARGETS = ("sm_80", "sm_90a")
"""What a Hopper GPU runs."""

_TOKENS = {"H": 4, "Hb": 4, "D": 128, "V": 128}
LARGE: Mapping[str, Mapping[str, int | str]] = {
    "attention": {"B": 1, "H": 4, "Hkv": 2, "Lq": 700, "Lk": 900, "D": 64},
    "gemm": {"M": 700, "N": 520, "K": 1032},
    "kda_prefill": {
        **_TOKENS,
        "T": 600,
        "N": 3,
        "N1": 4,
        "lengths": "300+0+300",
    },
    "kmeans_assign": {"B": 2, "N": 3000, "K": 400, "D": 64},
    "kmeans_update": {"B": 2, "N": 3000, "K": 400, "D": 64},
    "knn_search": {"B": 1, "Q": 200, "M": 3000, "D": 64, "k": 8},
    "rmsnorm": {"M": 300, "D": 240},
    "softmax": {"M": 300, "N": 400},
}
"""Problems that keep the whole device busy; the small ones of the mutants are run as well."""

ROUNDS = 3
"""Launches of a mutant on one problem, each with other data."""
OTHER_SECONDS = 90.0
"""How long a build or a comparison may take."""
RUN_SECONDS = 6.0
"""How long a launch may give no answer. The right kernels need milliseconds."""


def on_device(
    request: Mapping[str, Any],
    *,
    command: Sequence[str] = CHILD,
    other_seconds: float = OTHER_SECONDS,
    run_seconds: float = RUN_SECONDS,
) -> Record:
    """What became of one mutant: ``hang``, ``wrong``, ``right``, ``error`` or ``no build``.

    A launch that gives no answer is a hang; building and comparing with the reference may take
    longer.
    """
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as child:
        lines: list[Record] = []
        reader = threading.Thread(target=_collect, args=(child, lines), daemon=True)
        assert child.stdin is not None
        child.stdin.write(json.dumps(request))
        child.stdin.close()
        reader.start()
        overdue = _watched(reader, lines, other_seconds, run_seconds)
        if overdue:
            child.kill()
        reader.join()
    last = lines[-1] if lines else {}
    if overdue:
        state = "hang" if last.get("state") == "launched" else "no build"
        return {"state": state, "detail": json.dumps(last)}
    if last.get("state") in ("right", "wrong", "error", "no build"):
        return last
    # The child died of what the mutant did.
    return {"state": "error", "detail": f"exit status {child.returncode}"}


def _watched(
    reader: threading.Thread, lines: Sequence[Record], other_seconds: float, run_seconds: float
) -> bool:
    """Whether the child fell silent for too long before it closed its output."""
    seen, since = 0, time.monotonic()
    while reader.is_alive():
        reader.join(0.05)
        if len(lines) > seen:
            seen, since = len(lines), time.monotonic()
        launched = seen and lines[seen - 1].get("state") == "launched"
        if time.monotonic() - since > (run_seconds if launched else other_seconds):
            return True
    return False


def _collect(child: subprocess.Popen[str], lines: list[Record]) -> None:
    assert child.stdout is not None
    for line in child.stdout:
        lines.append(json.loads(line))


def chosen(killed: int, alive: int, processes: int) -> tuple[list[Fate], list[Fate], list[Mutant]]:
    """Mutants that a layer beyond the language kills, accepted ones that live, and all of them."""
    own = [s for s in subjects() if s.target in TARGETS]
    found = [m for s in own for m in mutants(s)]
    tried = sample([m for m in found if not operator(m.operator).values], 5 * (killed + alive) // 2)
    with get_context("spawn").Pool(processes, initializer=subjects) as pool:
        fates = pool.map(judge, tried, 1)
    dead = [f for f in fates if f.layer in ("L0", "L1", "L2", "L4", "simulator")]
    living = [f for f in fates if f.layer == "survivor" and f.verdict == "accepted"]
    return dead[:killed], living[:alive], tried


def request(mutant: Mutant) -> Record:
    """What the child is to run."""
    origin = subject(mutant.subject)
    return {
        "text": mutant.text,
        "workload": origin.workload,
        "shapes": [*map(dict, origin.shapes), dict(LARGE[origin.workload])],
        "rounds": ROUNDS,
    }


def measured(killed: int, alive: int, processes: int) -> Record:
    """The content of docs/perf/verifier_device.json."""
    dead, living, tried = chosen(killed, alive, processes)
    by_key = {m.key: m for m in tried}
    fates = [*dead, *living]
    with ThreadPoolExecutor(processes) as threads:
        states = list(threads.map(lambda f: on_device(request(by_key[f.key])), fates))
    rows = [{**_short(f), **state} for f, state in zip(fates, states, strict=True)]
    return figures(rows[: len(dead)], rows[len(dead) :])


def figures(killed: Sequence[Record], accepted: Sequence[Record]) -> Record:
    """Counts per state, and every mutant; what does not build counts nowhere."""
    ran = [r for r in killed if r["state"] != "no build"]
    right = [r for r in accepted if r["state"] != "no build"]
    return {
        "killed": len(ran),
        "killed_states": dict(Counter(r["state"] for r in ran)),
        "accepted": len(right),
        "accepted_states": dict(Counter(r["state"] for r in right)),
        "refuted": [r for r in right if r["state"] != "right"],
        "no_build": len(killed) + len(accepted) - len(ran) - len(right),
        "mutants": [*killed, *accepted],
    }


def _short(fate: Fate) -> Record:
    record = fate.record()
    names = ("subject", "operator", "layer", "code", "equivalent", "diff")
    return {name: record[name] for name in names}


def main() -> None:
    """Run the sample and write the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verifier.device")
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--page", type=Path, help="the page whose section is renewed")
    parser.add_argument("--killed", type=int, default=80, help="killed mutants to run")
    parser.add_argument("--alive", type=int, default=30, help="accepted mutants to run")
    parser.add_argument("--processes", type=int, default=8)
    options = parser.parse_args()
    result = {
        **measured(options.killed, options.alive, options.processes),
        **provenance("benchmarks.verifier.device"),
    }
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.page is not None:
        write_device(result, options.page)
    print(json.dumps({k: v for k, v in result.items() if k != "mutants"}, indent=1))


if __name__ == "__main__":
    main()
