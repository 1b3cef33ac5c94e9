"""The report: complete, self-contained, and proof against what candidates put into it."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from cake.diag import CakeError
from cake.evolve import Store
from cake.report import write_report
from cake.report.charts import Scale, scale
from cake.report.markup import Markup, join, tag
from tests.report.samples import HOSTILE, made_run


class Page(HTMLParser):
    """Elements, attributes and text of a page; fails on elements that are not closed in order."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, name, attributes):
        self.elements.append((name, dict(attributes)))
        self.open.append(name)

    def handle_startendtag(self, name, attributes):
        self.elements.append((name, dict(attributes)))

    def handle_endtag(self, name):
        assert self.open.pop() == name

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("script", "style"):
            self.text.append(data)

    def named(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for n, attributes in self.elements if n == name]


@pytest.fixture(scope="module", params=[False, True], ids=["estimated", "measured"])
def page(request, tmp_path_factory) -> tuple[bool, str, Page]:
    folder = tmp_path_factory.mktemp("report") / "run"
    text = write_report(made_run(folder, measured=request.param)).read_text(encoding="utf-8")
    return request.param, text, Page(text)


def test_every_part_is_there(page) -> None:
    measured, _, parsed = page
    anchors = [a["id"] for a in parsed.named("section")]
    expected = ["curve", "funnel", "best", "all", "findings", "run"]
    assert anchors == (["curve", "scatter", *expected[1:]] if measured else expected)
    headings = [*parsed.text]
    assert "rmsnorm for sm_90a" in headings
    assert ("0.0025 ms" if measured else "0.002 ms") in headings
    assert ("over torch" in headings, "2x" in headings) == (measured, measured)


def test_strings_of_candidates_stay_text(page) -> None:
    _, text, parsed = page
    assert HOSTILE not in text
    assert any(HOSTILE in part for part in parsed.text)
    assert len(parsed.named("script")) == 1
    assert not parsed.named("img")
    events = [name for _, a in parsed.elements for name in a if name.startswith("on")]
    assert not events


def test_nothing_is_loaded_and_only_the_own_script_may_run(page) -> None:
    _, text, parsed = page
    loading = [a for _, a in parsed.elements for name in ("src", "href", "srcset") if name in a]
    assert not loading
    assert not re.search(r"url\(|@import", text[: text.index("</style>")])
    (script,) = re.findall(r"<script>(.*?)</script>", text, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policies = [a["content"] for a in parsed.named("meta") if "http-equiv" in a]
    assert policies == [
        f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    ]


def test_candidates_filters_and_findings_are_listed(page) -> None:
    _, _, parsed = page
    text = " ".join(parsed.text)
    assert "T=bf16 WARPS=4 DP=128" in text
    assert "a CTA needs 300000 bytes" in text
    assert {"CK830", "CK831"} <= set(parsed.text)
    rows = [a for a in parsed.named("table") if a.get("id") == "candidates"]
    assert len(rows) == 1


def test_the_best_schedule_and_its_cuda_are_in_the_page(page) -> None:
    _, _, parsed = page
    text = "".join(parsed.text)
    assert "WARPS: meta(1, 2, 4) = 4" in text
    assert "__global__" in text
    assert {"best/schedule.py", "best/squares.cu", "best/scale.cu"} <= set(parsed.text)


def test_basics_of_accessibility(page) -> None:
    _, _, parsed = page
    assert parsed.named("html") == [{"lang": "en"}]
    charts = [a for a in parsed.named("svg") if a.get("class") == "chart"]
    assert charts
    assert all(a["role"] == "img" and a["aria-label"] for a in charts)
    assert all(a["scope"] == "col" for a in parsed.named("th"))
    labelled = {a["for"] for a in parsed.named("label")}
    assert {a["id"] for a in parsed.named("input")} == labelled


def test_a_run_without_anything_that_passed_has_a_report(tmp_path) -> None:
    folder = made_run(tmp_path / "run", measured=False)
    with Store.open(folder) as store:
        store.add_confirmation(3, "incorrect", "wrong after all")
    text = write_report(folder).read_text(encoding="utf-8")
    assert "No candidate has passed yet." in Page(text).text


def test_no_run_is_said(tmp_path) -> None:
    with pytest.raises(CakeError, match="CK823"):
        write_report(tmp_path)


def test_a_report_can_be_written_while_a_search_holds_the_run(tmp_path) -> None:
    folder = made_run(tmp_path / "run", measured=False)
    with Store.open(folder):
        first = write_report(folder).read_text(encoding="utf-8")
        assert write_report(folder).read_text(encoding="utf-8") == first


def test_markup_escapes_everything_that_it_did_not_make() -> None:
    assert tag("p", "<b>", Markup("<i></i>")) == "<p>&lt;b&gt;<i></i></p>"
    assert tag("a", None, title="\"<'") == '<a title="&quot;&lt;&#x27;"></a>'
    assert (
        tag("details", open=True, hidden=False, class_="x") == '<details open class="x"></details>'
    )
    assert tag("br") == "<br/>"
    assert join("&", 1, 2.5) == "&amp;12.5"


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        ([0.0, 10.0], [0, 5, 10]),
        ([0.84, 0.85], [0.84, 0.845, 0.85]),
        ([5.0], [4.6, 4.8, 5.0, 5.2, 5.4]),
    ],
)
def test_axes_have_round_ticks_inside(values, ticks) -> None:
    made = scale(values, 0, 100)
    inside = [t for t in made.ticks() if min(ticks) - 1e-9 <= t <= max(ticks) + 1e-9]
    assert inside == pytest.approx(ticks)
    assert all(made.low <= t <= made.high for t in made.ticks())


def test_an_axis_maps_its_ends_to_its_pixels() -> None:
    axis = Scale(low=1.0, high=3.0, start=100, end=0)
    assert (axis.at(1.0), axis.at(2.0), axis.at(3.0)) == (100, 50, 0)
