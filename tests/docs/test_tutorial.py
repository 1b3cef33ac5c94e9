"""The commands of the documentation print what the pages say they print."""

from pathlib import Path

import pytest

from tests.docs.sessions import blocks, rerun

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("page", ["docs/tutorial.md", "README.md"])
def test_sessions_print_what_the_page_shows(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAKE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    text = (ROOT / page).read_text(encoding="utf-8")
    assert any(block.language == "console" for block in blocks(text))
    assert rerun(text, tmp_path) == text, f"python -m tests.docs.sessions {page}"


def test_a_changed_output_is_noticed(tmp_path: Path) -> None:
    page = "```console\n$ cake explain CK004\n# CK004: something else\n```\n"
    assert "# CK004: no-schedule\n" in rerun(page, tmp_path)


def test_figures_may_differ_where_the_page_says_so(tmp_path: Path) -> None:
    page = "```console{}\n$ touch a1 \n$ ls .\na2\n```\n"
    assert "a1\n```" in rerun(page.format(""), tmp_path)
    assert "a2\n```" in rerun(page.format(" figures"), tmp_path)
