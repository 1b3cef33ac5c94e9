"""The events that lead to a finding: who shares a column, what is said of each, the picture."""

from __future__ import annotations

from typing import Any

from cake.report.timeline import Step, picture, timeline
from tests.report.test_report import Page

FACTS: dict[str, Any] = {
    "sizes": ["M = 65", "K = <1>"],
    "tiles": 2,
    "trips": ["line 13: 2 rounds"],
    "trace": [
        ["copier[0]", "wait", "empty[0]", -1, 14],
        ["copier[0]", "copy", "X[0]", 0, 16],
        ["math[0] (warp 0)", "wait", "full[0]", 0, 24],
        ["math[0] (warps 1-3)", "wait", "full[0]", 0, 24],
        ["math[0] (warp 0)", "wgmma", "read X[0]", 7, 25],
        ["math[0] (warps 1-3)", "wgmma", "read X[0]", 7, 25],
        ["copier[0]", "wait for ever", "empty[0]", 0, 14],
    ],
}


def test_actors_that_do_the_same_share_a_column() -> None:
    found = timeline(FACTS)
    assert found is not None
    assert found.columns == ("copier[0]", "math[0] (warp 0), math[0] (warps 1-3)")
    assert found.steps == (
        Step(0, 14, "wait empty[0], at once", "wait"),
        Step(0, 16, "copy X[0], phase 0", "work"),
        Step(1, 24, "wait full[0], phase 0", "wait"),
        Step(1, 25, "wgmma read X[0]", "work"),
        Step(0, 14, "wait empty[0], phase 0, for ever", "stuck"),
    )
    assert found.witness == "M = 65, K = <1>, 2 tiles of a CTA, line 13: 2 rounds"


def test_actors_that_differ_once_have_columns_of_their_own() -> None:
    found = timeline({**FACTS, "trace": FACTS["trace"][:-2]})
    assert found is not None
    assert len(found.columns) == 3


def test_a_finding_without_trace_has_no_timeline() -> None:
    assert timeline({"sizes": ["M = 1"]}) is None
    assert timeline({"trace": []}) is None


def test_the_picture_has_a_box_for_each_event_below_its_actor() -> None:
    found = timeline(FACTS)
    assert found is not None
    text = picture(found)
    page = Page(text)
    boxes = page.named("rect")
    assert len(boxes) == len(found.steps)
    left = [float(b["x"] or "") for b in boxes]
    assert left[0] == left[1] == left[4] < left[2] == left[3]
    down = [float(b["y"] or "") for b in boxes]
    assert down == sorted(down)
    assert boxes[-1]["class"] == "event stuck"
    assert "K = &lt;1&gt;" in text
    width = float((page.named("svg")[0]["viewbox"] or "").split()[2])
    assert all(float(b["x"] or "") + float(b["width"] or "") <= width for b in boxes)
