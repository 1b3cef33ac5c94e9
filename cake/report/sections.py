"""The parts of the report's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any

from cake.cost.page import quantity
from cake.evolve.schema import CandidateRow, EvaluationRow
from cake.judge import Verdict
from cake.report.charts import Dot, best_so_far, scatter
from cake.report.content import Content, Group
from cake.report.markup import Child, Markup, join, tag
from cake.report.tables import folded, meta_text, ms, section, table
from cake.report.timeline import picture, timeline

MAX_TIMELINES = 8
"""Findings whose events are drawn."""

STATUS_WORDS = {
    "points": "points of the space",
    "unscreened": "not screened: time",
    "invalid": "rejected by language, types or require",
    "unfit": "do not fit the shape or an SM",
    "duplicate": "equal programs",
    "pruned": "pruned by the estimate",
    "kept": "kept for evaluation",
    "rejected": "rejected by the verifier",
    "simulation": "finding of the simulator",
    "incorrect": "wrong result",
    "build_failed": "not built",
    "crashed": "process crashed",
    "hang": "took too long",
    "judge": "failed by the judge",
    "passed": "passed",
    "unevaluated": "not evaluated: budget",
}


def headline(c: Content) -> Markup:
    """The result in a few figures."""
    problem = c.setting.problem
    cards: list[tuple[str, str]] = []
    if c.best is not None:
        kind = "measured" if c.best.measured else "estimated"
        cards += [
            (f"best, {kind}", f"{ms(c.best.seconds)} ms"),
            ("useful work", f"{problem.flops / c.best.seconds / 1e12:.3g} TFLOP/s"),
            ("useful traffic", f"{problem.bytes_moved / c.best.seconds / 1e9:.3g} GB/s"),
            ("on all input families", "passed" if c.best.confirmed else "not run"),
            *_against_baseline(c),
        ]
    cards += [
        ("evaluations", str(len(c.evaluations))),
        ("time spent", f"{c.seconds:.0f} s"),
    ]
    items = [tag("div", tag("dt", name), tag("dd", value)) for name, value in cards]
    parts: list[Child] = [tag("dl", *items, class_="cards")]
    if c.best is None:
        parts.append(tag("p", "No candidate has passed yet.", class_="note"))
    elif not c.best.measured:
        parts.append(
            tag(
                "p",
                f"No GPU took part: times are estimates for {c.setting.part}, from the typed "
                "program and the registers of the built cubin. Candidates were verified, "
                "simulated at reduced shapes against the float64 reference, and built.",
                class_="note",
            )
        )
    return join(*parts)


def _against_baseline(c: Content) -> list[tuple[str, str]]:
    """The best candidate's speed over the baseline that was timed beside it, if one was."""
    text = next(e.verdict for e in c.evaluations if c.best and e.candidate == c.best.candidate)
    timings = Verdict.from_json(text).timings if text else ()
    return [(f"over {t.baseline_name}", f"{t.speedup:.3g}x") for t in timings if t.speedup]


def funnel_section(c: Content) -> Markup:
    """How many points got how far, and why the others did not."""
    total = max(1, c.funnel["points"])
    rows: list[list[Child]] = []
    for name, count in c.funnel.items():
        if count or name in ("points", "kept", "passed"):
            bar = tag(
                "svg",
                tag("rect", width=max(0.4, 100 * count / total), height=10, class_=f"bar {name}"),
                viewBox="0 0 100 10",
                preserveAspectRatio="none",
                class_="bar-box",
                aria_hidden="true",
            )
            rows.append([STATUS_WORDS[name], count, bar])
    reasons: list[list[Child]] = [[STATUS_WORDS[g.label], g.count, g.example] for g in c.filtered]
    return section(
        "Funnel",
        table(["where they ended", "candidates", ""], rows, class_="funnel"),
        tag("h3", "Why points were filtered"),
        folded(["stage", "candidates", "for example"], reasons),
        anchor="funnel",
    )


def curve_section(c: Content) -> Markup:
    """The best-so-far curve."""
    names = {x.id: x for x in c.candidates}
    dots = [
        Dot(
            x=number,
            y=e.seconds * 1e3,
            kind="spilled" if e.measured is None and e.spill_bytes else "passed",
            title=f"{number}: {_name(names[e.candidate])}, {ms(e.seconds)} ms",
        )
        for number, e in enumerate(c.evaluations, 1)
        if e.passed and e.seconds is not None
    ]
    if not dots:
        return section("Best so far", tag("p", "Nothing passed.", class_="note"), anchor="curve")
    best = [(number, e.seconds * 1e3) for number, e in c.leaders if e.seconds is not None]
    kind = "measured, ms" if c.measured else "estimated, ms"
    failed = len(c.evaluations) - len(dots)
    legend = (
        "A dot is an evaluation that passed; hollow ones spill registers and rank behind the "
        f"others. Evaluations that failed have no dot: {failed}."
    )
    return section(
        "Best so far",
        best_so_far(dots, best, kind),
        tag("p", legend, class_="note"),
        anchor="curve",
    )


def scatter_section(c: Content) -> Markup | None:
    """Estimates against measurements, where there are any."""
    names = {x.id: x for x in c.candidates}
    dots = [
        Dot(
            x=e.measured * 1e3,
            y=e.estimated * 1e3,
            kind="passed",
            title=f"{_name(names[e.candidate])}: measured {ms(e.measured)} ms, "
            f"estimated {ms(e.estimated)} ms",
        )
        for e in c.evaluations
        if e.measured is not None and e.estimated is not None
    ]
    if not dots:
        return None
    return section("Estimate against measurement", scatter(dots), anchor="scatter")


def _name(c: CandidateRow) -> str:
    return f"{c.variant} {meta_text(c.meta)}"


def candidates_section(c: Content) -> Markup:
    """Every candidate that the estimate left, sortable."""
    done = {e.candidate: e for e in c.evaluations}
    heads = ["#", "variant", "status", "first estimate, ms", "with registers, ms"]
    heads += ["measured, ms"] if c.measured else []
    heads += ["bound", "registers", "spilled bytes", "evaluated in, s", "parameters", "detail"]
    kept = [x for x in c.candidates if x.status == "kept"]
    winner = None if c.best is None else c.best.candidate
    kept.sort(key=lambda x: (x.id != winner, x.id not in done, x.seconds or 0.0))
    rows = [_row(x, done.get(x.id), c) for x in kept]
    box = tag(
        "p",
        tag("label", "Filter: ", for_="filter"),
        tag("input", id="filter", type="search", placeholder="WG=4, passed, tensor ..."),
        tag("span", id="shown", role="status"),
        class_="controls",
    )
    return section(
        "Candidates",
        box,
        table(heads, rows, id="candidates", class_="sortable"),
        anchor="all",
    )


def _row(x: CandidateRow, e: EvaluationRow | None, c: Content) -> list[Child]:
    status = "waiting" if e is None else e.status
    badge = tag("span", status, class_=f"badge {status}")
    if c.best is not None and x.id == c.best.candidate:
        badge = join(badge, " ", tag("span", "best", class_="badge best"))
    registers = "" if e is None else _registers(e)
    parameters = tag("span", meta_text(x.meta), class_="whole")
    cells: list[Child] = [x.id, x.variant, badge, ms(x.seconds)]
    cells.append(ms(None if e is None else e.estimated))
    if c.measured:
        cells.append(ms(None if e is None else e.measured))
    cells += [x.bound, registers, "" if e is None else e.spill_bytes]
    cells += ["" if e is None else f"{e.wall_seconds:.2f}", parameters]
    cells.append("" if e is None else e.detail)
    return cells


def _registers(e: EvaluationRow) -> str:
    return ", ".join(str(n) for n in e.record.get("registers", {}).values())


def best_section(c: Content) -> Markup | None:
    """The best candidate: where its time goes, its source and its CUDA."""
    if c.best is None:
        return None
    row = next(e for e in c.evaluations if e.candidate == c.best.candidate)
    parts: list[Child] = [
        tag("p", f"Candidate {c.best.candidate}: {c.best.variant}, {meta_text(c.best.meta)}")
    ]
    parts += [_kernel(k) for k in (row.record.get("estimate") or {}).get("kernels", ())]
    for name, text in c.files.items():
        opened = name.endswith(".py")
        parts.append(
            tag(
                "details",
                tag("summary", name),
                tag("pre", tag("code", text), tabindex=0),
                open=opened,
            )
        )
    return section("Best schedule", *parts, anchor="best")


def _kernel(k: Any) -> Markup:
    """The estimate of one kernel."""
    longest = max((r["exposed"] for r in k["resources"]), default=0.0) or 1.0
    rows = []
    for r in sorted(k["resources"], key=lambda r: -r["exposed"]):
        bar = tag(
            "svg",
            tag("rect", width=100 * r["exposed"] / longest, height=10, class_="bar"),
            viewBox="0 0 100 10",
            preserveAspectRatio="none",
            class_="bar-box",
            aria_hidden="true",
        )
        rows.append([r["name"], ms(r["exposed"]), bar, quantity(r["work"], r["unit"])])
    held = k["occupancy"]
    about = (
        f"{ms(k['seconds'])} ms, bound by {k['bound']}; {k['ctas']} CTAs of {held['threads']} "
        f"threads, {held['ctas']} on an SM (limit: {held['limiter']}), {held['smem_bytes']} bytes "
        f"of shared memory, {held['registers']} registers, {k['waves']:.2f} waves"
    )
    assumed = [tag("li", text) for text in k["assumptions"]]
    return join(
        tag("h3", f"Kernel {k['kernel']}"),
        tag("p", about),
        table(["resource", "ms alone", "", "work"], rows),
        tag("ul", *assumed, class_="note") if assumed else None,
    )


def findings_section(c: Content) -> Markup:
    """Findings of all stages, alike ones together."""
    rows = [_finding(g) for g in c.findings]
    return section(
        "Findings",
        folded(["code", "severity", "stage", "times", "for example", "at"], rows),
        *_timelines(c.findings),
        anchor="findings",
    )


def _timelines(findings: Sequence[Group]) -> Iterator[Markup]:
    """The events that lead to findings of phases, folded away."""
    drawn = ((g, timeline(g.detail["facts"])) for g in findings)
    for g, events in islice(((g, events) for g, events in drawn if events), MAX_TIMELINES):
        summary = tag("summary", f"{g.label}: events that lead there ({events.witness})")
        image = tag("div", picture(events), class_="scroll")
        yield tag("details", summary, tag("p", g.example), image)


def _finding(g: Group) -> list[Child]:
    d = g.detail
    span = d["span"]
    place = "" if span is None else f"{span['file'].rsplit('/', 1)[-1]}:{span['line']}"
    severity = tag("span", d["severity"], class_=f"badge {d['severity']}")
    return [g.label, severity, d["stage"], g.count, g.example, place]


def environment_section(c: Content) -> Markup:
    """What the run was and what it ran on."""
    s = c.setting
    about: list[Sequence[Child]] = [
        ["workload", s.workload],
        ["shape", s.case.label()],
        ["target", s.target],
        ["estimates for", s.part],
        ["device", s.device],
        ["seed", s.seed],
        ["share kept by the estimate", s.keep],
        *(
            [v.name, f"{v.path.rsplit('/', 1)[-1]}, written for {v.written_for or s.target}"]
            for v in s.variants
        ),
    ]
    rows: list[list[Child]] = []
    for one in c.sessions:
        facts = "; ".join(f"{name} {value}" for name, value in one["environment"].items())
        outcome = one["outcome"] or "not ended"
        rows.append([one["id"], one["started"], f"{one['seconds']:.1f}", outcome, facts])
    return section(
        "Run",
        table(["fact", "value"], about),
        tag("h3", "Sessions"),
        table(["session", "started", "seconds", "ended by", "environment"], rows),
        anchor="run",
    )
