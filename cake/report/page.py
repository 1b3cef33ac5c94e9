"""The report of a run: one HTML file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path

from cake.evolve.database import writing
from cake.evolve.outputs import write_whole
from cake.report.content import Content, read_content
from cake.report.markup import Markup, join, tag
from cake.report.sections import (
    best_section,
    candidates_section,
    curve_section,
    environment_section,
    findings_section,
    funnel_section,
    headline,
    scatter_section,
)

REPORT = "report.html"


def write_report(folder: Path) -> Path:
    """Write ``report.html`` into the run's folder and return its path.

    Raises :class:`CakeError`: ``not-a-run``, ``run-not-writable``.
    """
    text = report_html(read_content(folder))
    with writing(folder):
        write_whole(folder / REPORT, text)
    return folder / REPORT


def report_html(content: Content) -> str:
    """The page. It loads nothing: style and script are inside, and its policy forbids the rest."""
    setting = content.setting
    title = f"{setting.workload} for {setting.target}"
    script = _asset("report.js")
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=_policy(script)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", f"CAKE: {title}"),
        Markup(f"<style>{_asset('report.css')}</style>"),
    )
    parts = [
        tag("header", tag("h1", title), tag("p", setting.case.label())),
        headline(content),
        curve_section(content),
        scatter_section(content),
        funnel_section(content),
        best_section(content),
        candidates_section(content),
        findings_section(content),
        environment_section(content),
    ]
    body = tag("body", tag("main", *parts), Markup(f"<script>{script}</script>"))
    return join(Markup("<!DOCTYPE html>\n"), tag("html", head, body, lang="en")) + "\n"


def _policy(script: str) -> str:
    """Only the script of the report itself runs, whatever a candidate's text holds."""
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"


def _asset(name: str) -> str:
    return (files("cake.report") / "assets" / name).read_text(encoding="utf-8")
