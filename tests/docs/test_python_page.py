"""The code of the page about Python does what the page says."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from cake.lang.decorator import Schedule
from tests.docs.sessions import Block, blocks

PAGE = Path(__file__).parents[2] / "docs" / "python.md"
BLOCKS = [b for b in blocks(PAGE.read_text(encoding="utf-8")) if b.language == "python"]


def run(block: Block, names: dict[str, Any]) -> None:
    text = "\n" * block.line + block.text
    exec(compile(text, str(PAGE), "exec"), names)


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What is known after everything that needs no GPU."""
    monkeypatch.setenv("CAKE_CACHE_DIR", str(tmp_path))
    known: dict[str, Any] = {}
    for block in BLOCKS:
        if not block.words:
            run(block, known)
    return known


def test_check_simulate_and_build(names: dict[str, Any]) -> None:
    assert names["verdict"].status == "accepted"
    assert "copy_kernel" in names["compiled"].source


def test_the_module_holds_a_schedule(tmp_path: Path) -> None:
    (block,) = [b for b in BLOCKS if "module" in b.words]
    path = tmp_path / "doubled.py"
    path.write_text(block.text, encoding="utf-8")
    spec = importlib.util.spec_from_file_location("doubled", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    assert isinstance(module.double, Schedule)
    assert module.program.name == "double"


@pytest.mark.gpu
def test_launch(names: dict[str, Any]) -> None:
    for block in BLOCKS:
        if "gpu" in block.words:
            run(block, names)


def test_there_is_something_to_run_on_a_gpu() -> None:
    assert any("kernel.launch" in b.text for b in BLOCKS if "gpu" in b.words)
