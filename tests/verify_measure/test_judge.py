"""The fate of chosen mutants of a shipped schedule, and where its findings point."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from benchmarks.verifier import equivalent
from benchmarks.verifier.equivalent import ARGUMENTS, argument
from benchmarks.verifier.figures import figures
from benchmarks.verifier.judge import OutOfTime, judge, time_limit
from benchmarks.verifier.mutants import mutants
from benchmarks.verifier.page import BEGIN, END, render, write
from benchmarks.verifier.partners import partner_lines
from benchmarks.verifier.subjects import subject

SOFTMAX = "softmax/sm_80"
GEMM = "gemm/sm_90a"


def fate(name: str, operator: str, text: str) -> dict[str, Any]:
    """The fate of the first mutant of an operator whose difference contains ``text``."""
    chosen = (m for m in mutants(subject(name)) if m.operator == operator and text in m.diff())
    return judge(next(chosen)).record()


def test_a_dropped_fence_is_found_statically_at_its_partner() -> None:
    f = fate(GEMM, "drop fence", "fence_async")
    assert (f["layer"], f["localised"], f["equivalent"]) == ("L0", True, None)


def test_a_ring_that_one_side_leaves_earlier_is_found_by_algebra() -> None:
    f = fate(GEMM, "stepping loop begins later", "-            for k in range(1")
    assert (f["layer"], f["localised"]) == ("L1", True)


def test_a_wrong_value_is_found_by_the_simulator() -> None:
    f = fate(SOFTMAX, "loop ends earlier", "-        for d in range")
    assert (f["layer"], f["code"]) == ("simulator", "value")


def test_a_second_barrier_means_the_same_and_survives() -> None:
    f = fate(SOFTMAX, "duplicate barrier", "cta_sync")
    assert (f["layer"], f["verdict"]) == ("survivor", "accepted")
    assert f["equivalent"]


def test_partners_share_a_resource_or_a_mechanism() -> None:
    (program,) = subject(GEMM).programs()
    lines = subject(GEMM).text.splitlines()

    def partners(text: str) -> set[str]:
        at = next(n for n, line in enumerate(lines, 1) if text in line)
        return {lines[n - 1].strip() for n in partner_lines(program, frozenset({at}))}

    fence = partners("fence_async()")
    assert any(p.startswith("tma_store(") for p in fence)
    assert any(p.startswith("stmatrix(") for p in fence)
    assert not any(p.startswith(("wgmma(", "release(", "store(")) for p in fence)
    release = partners("release(ab, last)")
    assert "with ab.fill() as s:" in release
    assert any(p.startswith("tma_load(") for p in release)
    assert not any(p.startswith(("stmatrix(", "tma_store")) for p in release)
    assert not any(p.startswith("wgmma(") for p in partners("stmatrix("))


def test_the_time_of_a_mutant_is_limited() -> None:
    with pytest.raises(OutOfTime), time_limit(0.05):
        all(True for _ in itertools.repeat(None))


def row(layer: str, **changes: Any) -> dict[str, Any]:
    plain = dict.fromkeys(("key", "code", "message", "verdict", "subject", "diff"), "x")
    return {
        **plain,
        "operator": "drop fence",
        "values": False,
        "equivalent": None,
        "layer": layer,
        "localised": layer != "simulator",
        **changes,
    }


def generated(status: str, fault: str | None) -> dict[str, Any]:
    return {"family": "f", "fault": fault, "status": status, "text": status, "message": ""}


def test_figures_count_what_is_not_equivalent(monkeypatch: pytest.MonkeyPatch) -> None:
    fates = [
        row("L0"),
        row("L1", localised=False),
        row("simulator"),
        row("survivor"),
        row("survivor", equivalent="the same"),
        row("survivor", diff="@@ -1 +1 @@\n-    a\n+    b"),
        row("survivor", values=True),
    ]
    valid = [generated("accepted", None), generated("rejected", None)]
    unsafe = [generated("rejected", "a"), generated("incomplete", "a"), generated("accepted", "b")]
    monkeypatch.setattr(
        equivalent, "ARGUMENTS", {"they are": (("x", "drop fence", "@@ -1 +1 @@ | -a | +b"),)}
    )
    f = figures(fates, valid, unsafe)
    assert (f["mutants"], f["kill_rate"], f["static_kill_rate"]) == (6, 0.75, 0.5)
    assert (f["localisation"], f["false_alarms"], f["unsafe_accepted"]) == (0.5, 1, 1)
    details = f["details"]
    assert (details["hazards"]["equivalent"], details["values"]["kill_rate"]) == (2, 0.0)
    assert details["all"]["mutants"] == 7
    assert (len(details["survivors"]), len(details["argued"])) == (2, 1)


def test_an_argument_belongs_to_one_kind_of_mutant() -> None:
    assert len({m for mutants_ in ARGUMENTS.values() for m in mutants_}) == sum(
        map(len, ARGUMENTS.values())
    )
    assert argument(row("survivor")) is None


def test_the_page_gets_the_tables(tmp_path: Any) -> None:
    f = figures([row("survivor", diff="@@ -1 +1 @@\n-a | b\n+c")], [], [])
    page = tmp_path / "page.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    write(f, page)
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "`-a \\| b +c`" in text
    assert "old" not in text
    assert render(f) in text
