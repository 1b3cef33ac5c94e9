"""`cake doctor`: what this machine can do."""

from __future__ import annotations

from dataclasses import asdict

from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.probes import Found, all_probes
from cake.cli.status import Status

_ESSENTIAL = frozenset({"Python", "numpy", "NVRTC"})
"""Without these not even the path that needs no GPU works."""


@cake_command("doctor")
def command(out: Output) -> Status:
    """Say what this machine can do, and what to install for the rest.

    No GPU is needed to check, simulate, estimate and build. Ends with 4 if something is missing
    that these need.
    """
    with out.progress("looking") as advance:
        found = []
        for answer in all_probes():
            found.append(answer)
            advance(answer.what)
    out.table(("", "what", "found"), [(_mark(f), f.what, f.detail) for f in found])
    missing = [f for f in found if not f.ok]
    if missing:
        out.line()
    for f in missing:
        purpose = f" (for {', '.join(f.needed_for)})" if f.needed_for else ""
        out.line(f"{f.what}{purpose}: {f.remedy}")
    lacking = any(f.what in _ESSENTIAL for f in missing)
    entries = {"probes": [asdict(f) for f in found]}
    return out.finish(Status.ENVIRONMENT if lacking else Status.ACCEPTED, entries)


def _mark(f: Found) -> str:
    return "ok" if f.ok else "--"
