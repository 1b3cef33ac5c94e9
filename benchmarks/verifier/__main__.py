"""``python -m benchmarks.verifier --out docs/perf/verifier.json --limit N``."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.verifier.figures import figures
from benchmarks.verifier.page import write
from benchmarks.verifier.runner import all_mutants, judged
from benchmarks.verifier.verdicts import generated


def main() -> None:
    """Measure the verifier; write the figures and, on request, the tables of its page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.verifier", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="the JSON file to write")
    parser.add_argument("--limit", type=int, default=300, help="mutants (a spread sample)")
    parser.add_argument("--generated", type=int, default=300, help="valid, and unsafe, schedules")
    parser.add_argument("--journal", type=Path, help="fates by line, to resume from")
    parser.add_argument("--page", type=Path, help="the page whose tables are renewed")
    options = parser.parse_args()
    fates = judged(all_mutants(options.limit), options.journal)
    valid, unsafe = generated(options.generated)
    result = figures(fates, valid, unsafe)
    options.out.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    if options.page is not None:
        write(result, options.page)
    # The first entries are the headline; the others are tables.
    print(json.dumps({k: v for k, v in result.items() if not isinstance(v, list | dict)}, indent=1))


if __name__ == "__main__":
    main()
