"""`cake replay`: a stored verdict once more."""

from __future__ import annotations

import json
from pathlib import Path

import click

from cake.cli.findings import REPLAY_DIFFERS
from cake.cli.judging import unavailable
from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.cli.storing import opened, store_option
from cake.diag import Diagnostic
from cake.judge import JudgeUnavailable
from cake.judge.replay import replay


@cake_command("replay")
@click.argument("number", type=click.IntRange(min=1), required=False)
@store_option
def command(out: Output, number: int | None, folder: Path | None) -> Status:
    """Judge a stored candidate again, with the seeds of then.

    Ends with 0 if everything that was decided comes out again. Times are not taken. Without NUMBER:
    list what is stored.
    """
    with opened(folder) as store:
        if number is None:
            rows = list(store.rows())
            table = [(r.id, r.made, r.workload, r.entry, r.device, r.status) for r in rows]
            out.table(("number", "made", "workload", "candidate", "device", "status"), table)
            listed = [{"number": r.id, "workload": r.workload, "status": r.status} for r in rows]
            return out.finish(Status.ACCEPTED, {"verdicts": listed})
        request, then = store.get(number)
    try:
        with out.progress("judging again"):
            again = replay(request, then)
    except JudgeUnavailable as error:
        raise unavailable(request, error) from None
    findings = tuple(Diagnostic.of(REPLAY_DIFFERS, text) for text in again.differences)
    out.findings(findings, {})
    word = "the same" if again.same else "another"
    out.heading(f"verdict {number}, {then.workload}: {then.status}; {word} verdict again")
    entries = {"same": again.same, "verdicts": [json.loads(v.to_json()) for v in again.verdicts]}
    return out.finish(Status.ACCEPTED if again.same else Status.REJECTED, entries, findings)
