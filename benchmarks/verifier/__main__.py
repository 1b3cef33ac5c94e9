"""``python -m benchmarks.verifier --out docs/perf/verifier.json``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.verifier.figures import figures
from benchmarks.verifier.journal import Journal
from benchmarks.verifier.page import write
from benchmarks.verifier.provenance import provenance
from benchmarks.verifier.runner import chosen, judged
from benchmarks.verifier.verdicts import generated


def main() -> None:
    """Measure the verifier; write the figures and, on request, the tables of its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verifier", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--limit", type=int, default=4000, help="mutants that are unsafe, at most")
    parser.add_argument("--values", type=int, default=200, help="mutants of values, a sample")
    parser.add_argument("--generated", type=int, default=5000, help="valid, and unsafe, schedules")
    parser.add_argument("--journal", type=Path, help="what has been judged, to go on from")
    parser.add_argument("--page", type=Path, help="the page whose tables are renewed")
    parser.add_argument("--processes", type=int, default=2)
    options = parser.parse_args()
    origin = provenance("benchmarks.verifier")
    tried = chosen(options.limit, options.values)
    journal = Journal(options.journal)
    fates = judged(tried, journal, options.processes)
    valid, unsafe = generated(options.generated, journal, options.processes)
    result = {**figures(fates, valid, unsafe), **origin}
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.page is not None:
        write(result, options.page)
    # The first entries are the headline; the others are tables.
    print(json.dumps({k: v for k, v in result.items() if not isinstance(v, list | dict)}, indent=1))


if __name__ == "__main__":
    main()
