"""`cake check`: what the language and the verifier say about a schedule file."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from shutil import get_terminal_size
from typing import Any

import click

from cake.cli.options import cake_command, level_option, schedule_options
from cake.cli.output import Output, colored
from cake.cli.sources import Text, elaborate, read
from cake.cli.status import Status
from cake.diag import Diagnostics, summary_line, to_json
from cake.lang.elaborate import Parsed
from cake.verify import LAYERS, RULES, Verdict, verify
from cake.verify.rule import Level


@cake_command("check")
@schedule_options
@level_option
@click.option("--quick", is_flag=True, help="Run the rules only, no phases and no solver.")
@click.option("--trace", is_flag=True, help="Draw the events that lead to findings of phases.")
def command(
    out: Output,
    file: str,
    meta: Mapping[str, Any],
    target: str | None,
    level: Level,
    quick: bool,
    trace: bool,
) -> Status:
    """Check a schedule file: language, types, rules.

    FILE holds one or more schedules; - reads standard input. Nothing of it is executed. Prints
    every finding, then a verdict for each schedule: accepted, rejected, or incomplete where some
    construct is beyond them. The rules take milliseconds, the phase simulation up to two seconds;
    with --quick what it and the solver decide stays open.
    """
    text = read(file)
    parsed = elaborate(text, meta, target)
    layers = RULES if quick else LAYERS
    verdicts = [verify(program, level=level, layers=layers) for program in parsed.programs]
    found = Diagnostics(parsed.diagnostics)
    for verdict in verdicts:
        found.extend(verdict.diagnostics)
    schedules = _schedules(text, parsed, verdicts)
    status = overall(parsed, verdicts)

    out.findings(tuple(found), text.sources)
    if trace:
        _timelines(out, found)
    out.table(
        ("schedule", "target", "verdict"),
        [(s["name"], s["target"] or "-", s["verdict"]) for s in schedules],
    )
    for schedule in schedules:
        for what in schedule["uncovered"]:
            out.line(f"{schedule['name']}: not covered: {what}")
    for verdict in verdicts:
        for a in verdict.allowed:
            d = a.diagnostic
            out.line(f"{d.span}: allowed: {d.code} {d.message}, because {a.reason}")
    out.heading(f"{text.file}: {status.word}, {summary_line(found)}")
    return out.finish(status, {"file": text.file, "schedules": schedules}, tuple(found))


def _timelines(out: Output, found: Diagnostics) -> None:
    """Draw the events that lead to each finding that has them."""
    if out.as_json:
        return
    from cake.cli.timeline import drawn
    from cake.report.timeline import timeline

    for d in found:
        events = timeline(d.facts)
        if events is not None:
            out.heading(f"{d.code} at {d.span}: {events.witness}")
            width = get_terminal_size().columns
            out.line(drawn(events, width=width, color=colored(sys.stdout)) + "\n")


def _schedules(text: Text, parsed: Parsed, verdicts: Sequence[Verdict]) -> list[dict[str, Any]]:
    """What became of each schedule; those that did not elaborate come last."""
    elaborated = [
        {
            "name": program.name,
            "target": program.target,
            "verdict": verdict.status,
            "uncovered": list(verdict.uncovered),
            "allowed": [
                {"finding": to_json(a.diagnostic), "reason": a.reason} for a in verdict.allowed
            ],
        }
        for program, verdict in zip(parsed.programs, verdicts, strict=True)
    ]
    known = {program.name for program in parsed.programs}
    return elaborated + [
        {"name": name, "target": None, "verdict": "rejected", "uncovered": [], "allowed": []}
        for name in text.schedule_names()
        if name not in known
    ]


def overall(parsed: Parsed, verdicts: Sequence[Verdict]) -> Status:
    """The worst of the file's parts."""
    words = {verdict.status for verdict in verdicts}
    if not parsed.ok or "rejected" in words:
        return Status.REJECTED
    return Status.INCOMPLETE if "incomplete" in words else Status.ACCEPTED
