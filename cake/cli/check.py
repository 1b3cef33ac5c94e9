"""`cake check`: what the language and the verifier say about a schedule file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cake.cli.options import cake_command, level_option, schedule_options
from cake.cli.output import Output
from cake.cli.sources import elaborate, read
from cake.cli.status import Status
from cake.diag import Diagnostics, summary_line
from cake.lang.elaborate import Parsed
from cake.verify import Verdict, verify
from cake.verify.rule import Level


@cake_command("check")
@schedule_options
@level_option
def command(
    out: Output, file: str, meta: Mapping[str, Any], target: str | None, level: Level
) -> Status:
    """Check a schedule file: language, types, rules.

    FILE holds one or more schedules; - reads standard input. Nothing of it is executed. Prints
    every finding, then a verdict for each schedule: accepted, rejected, or incomplete where some
    construct is beyond the rules.
    """
    text = read(file)
    parsed = elaborate(text, meta, target)
    verdicts = {program.name: verify(program, level=level) for program in parsed.programs}
    found = Diagnostics(parsed.diagnostics)
    for verdict in verdicts.values():
        found.extend(verdict.diagnostics)
    status = overall(parsed, verdicts)
    words = {
        name: verdicts[name].status if name in verdicts else "rejected"
        for name in text.schedule_names()
    }
    targets = {program.name: program.target for program in parsed.programs}

    out.findings(tuple(found), text.sources)
    out.table(
        ("schedule", "target", "verdict"),
        [(name, targets.get(name, "-"), word) for name, word in words.items()],
    )
    for name, verdict in verdicts.items():
        for what in verdict.uncovered:
            out.line(f"{name}: not covered: {what}")
    out.heading(f"{text.file}: {status.word}, {summary_line(found)}")
    entries = {
        "file": text.file,
        "schedules": [
            {
                "name": name,
                "target": targets.get(name),
                "verdict": word,
                "uncovered": list(verdicts[name].uncovered) if name in verdicts else [],
            }
            for name, word in words.items()
        ],
    }
    return out.finish(status, entries, tuple(found))


def overall(parsed: Parsed, verdicts: Mapping[str, Verdict]) -> Status:
    """The worst of the file's parts."""
    words = {verdict.status for verdict in verdicts.values()}
    if not parsed.ok or "rejected" in words:
        return Status.REJECTED
    return Status.INCOMPLETE if "incomplete" in words else Status.ACCEPTED
