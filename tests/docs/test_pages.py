"""The generated pages are those that the code makes, and links lead somewhere."""

import re
from pathlib import Path

import pytest

from cake.codes import load_all
from cake.codes import render as render_codes
from cake.lang.page import render as render_primitives
from cake.ops.base import all_primitives
from cake.targets import get, names

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_LINK = re.compile(r"\[[^\]]*\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
_CODE = re.compile(r"```.*?```|`[^`\n]*`", re.DOTALL)
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
_ANCHOR = re.compile(r'<a id="([^"]+)">')


def test_the_page_of_primitives_is_current() -> None:
    page = (ROOT / "docs" / "primitives.md").read_text(encoding="utf-8")
    assert page == render_primitives(all_primitives()), (
        "write it anew: python -m cake.lang.page > docs/primitives.md"
    )


def test_the_page_of_codes_is_current() -> None:
    page = (ROOT / "docs" / "codes.md").read_text(encoding="utf-8")
    assert page == render_codes(), "write it anew: python -m cake.codes > docs/codes.md"


def test_the_page_of_codes_has_a_section_for_each() -> None:
    page = render_codes()
    for entry in load_all():
        assert f'<a id="{entry.code.lower()}"></a>\n\n## {entry.code}: {entry.name}\n' in page


def test_every_primitive_names_its_targets() -> None:
    page = render_primitives(all_primitives())
    assert "* Targets: all\n" in page
    wgmma = page.partition("\n## wgmma\n")[2].partition("\n## ")[0]
    assert f"* Targets: {', '.join(n for n in names() if get(n).wgmma)}\n" in wgmma


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for target, anchor in _LINK.findall(_CODE.sub("", text)):
        other = page if not target else (page.parent / target).resolve()
        assert other.exists(), target
        if anchor:
            assert anchor in _anchors(other.read_text(encoding="utf-8")), f"{target}#{anchor}"


def test_the_index_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    index = (docs / "index.md").read_text(encoding="utf-8")
    linked = {(docs / target).resolve() for target, _ in _LINK.findall(index)}
    assert {p.resolve() for p in docs.rglob("*.md")} - linked == {docs.resolve() / "index.md"}


def _anchors(text: str) -> set[str]:
    """Anchors of a page as GitHub makes them, and those that it sets itself."""
    headings = (
        re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in _HEADING.findall(text)
    )
    return {*headings, *_ANCHOR.findall(text)}
