"""`cake selftest`: whether the judge catches what it has to, and passes what is right."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict

import click

from cake.cli.findings import TWIN_MISJUDGED
from cake.cli.options import cake_command
from cake.cli.output import Output
from cake.cli.status import Status
from cake.diag import Diagnostic
from cake.judge.selftest import IntegrityClass, Report, classes, run
from cake.runtime import driver

_EVIDENCE = 90  # characters of a table's cell


@cake_command("selftest")
@click.argument("names", nargs=-1, metavar="[CLASS]...")
@click.option(
    "--device",
    type=click.Choice(("cpu", "cuda")),
    default="cpu",
    show_default=True,
    help="cuda: the classes that need a GPU, too.",
)
@click.option("--jobs", type=click.IntRange(min=1), default=1, show_default=True)
def command(out: Output, names: tuple[str, ...], device: str, jobs: int) -> Status:
    """Check the judge by cheating and by honest candidates.

    The twins of every class of cheating and accident are run, or of those named. Each cheating
    twin has to be caught, each honest twin has to pass. Classes that time something run alone,
    whatever --jobs says.
    """
    if device == "cuda":
        driver.driver()
    chosen = _chosen(names, device)
    reports: list[Report] = []
    with out.progress("judging twins", total=len(chosen)) as advance:
        for found in _run(chosen, jobs):
            reports += found
            advance(found[0].name)
    rows = [
        (r.name, r.twin, _word(r), f"{r.seconds:.1f} s", _short(r.outcome.evidence))
        for r in reports
    ]
    out.table(("class", "twin", "verdict", "time", "evidence"), rows)
    wrong = [r for r in reports if not r.ok]
    findings = tuple(_finding(report) for report in wrong)
    out.line()
    out.findings(findings, {})
    out.heading(f"selftest: {len(reports) - len(wrong)} of {len(reports)} twins judged rightly")
    status = Status.REJECTED if wrong else Status.ACCEPTED
    return out.finish(status, {"twins": [asdict(r) for r in reports]}, findings)


def _chosen(names: tuple[str, ...], device: str) -> list[IntegrityClass]:
    known = {each.name: each for each in classes()}
    if unknown := sorted(set(names) - known.keys()):
        raise click.UsageError(f"no class {', '.join(unknown)}; there are {', '.join(known)}")
    admitted = [each for each in known.values() if device in (each.device, "cuda")]
    chosen = [each for each in admitted if not names or each.name in names]
    if not chosen:
        raise click.UsageError(f"{', '.join(names)} need a GPU: --device cuda")
    return chosen


def _run(chosen: list[IntegrityClass], jobs: int) -> list[list[Report]]:
    """The reports of each class, in order."""
    together = [each for each in chosen if not each.timed]
    with ThreadPoolExecutor(jobs) as pool:
        reports = list(pool.map(lambda each: list(run(each)), together))
    found = {each.name: made for each, made in zip(together, reports, strict=True)}
    return [found[each.name] if each.name in found else list(run(each)) for each in chosen]


def _word(report: Report) -> str:
    if report.twin == "honest":
        return "passed" if report.ok else "NOT PASSED"
    return "caught" if report.ok else "NOT CAUGHT"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EVIDENCE else line[: _EVIDENCE - 3] + "..."


def _finding(report: Report) -> Diagnostic:
    return Diagnostic.of(
        TWIN_MISJUDGED,
        f"{report.name}, {report.twin}: {_word(report).lower()}: {_short(report.outcome.evidence)}",
        facts={"class": report.name, "twin": report.twin, "evidence": report.outcome.evidence},
        helps=(f"what decides about this class: {report.caught_by}",),
    )
