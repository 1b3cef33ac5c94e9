"""Running `cake` in the tests: in this process, or in one of its own."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cake.cli import main
from cake.cli.status import Status

ROOT = Path(__file__).parents[2]

GOOD = """\
@cake.schedule(target="sm_80")
def scale(x: Tensor[f32, "N"], y: Tensor[f32, "N"], a: f32, *, WARPS: meta(1, 2) = 1):
    (block,) = grid(cdiv(N, 32 * WARPS))
    work = role(warps=WARPS)
    with work as u:
        i = block * 32 * WARPS + u * 32 + lane()
        store(y[i], load(x[i], mask=i < N, fill=0.0) * a, mask=i < N)
"""

TWO_ERRORS = (
    GOOD
    + """\
        j = lan()
        k = fma(1.0, a)
"""
)


@pytest.fixture(autouse=True)
def _own_folders(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kernels built and verdicts kept here stay out of the user's folders."""
    monkeypatch.setenv("CAKE_CACHE_DIR", str(tmp_path_factory.getbasetemp() / "cache"))
    monkeypatch.setenv("CAKE_STORE_DIR", str(tmp_path_factory.mktemp("store")))


@pytest.fixture
def cake() -> Callable[..., Result]:
    """``cake("check", path)``: the result of a command run in this process."""

    def run(*arguments: object, **options: Any) -> Result:
        result = CliRunner().invoke(main, [str(a) for a in arguments], **options)
        assert result.exit_code != Status.FAULT, result.stderr
        return result

    return run


@pytest.fixture
def document(cake: Callable[..., Result]) -> Callable[..., dict[str, Any]]:
    """The JSON document of a command; its status word agrees with the exit status."""
    words = {0: "accepted", 1: "rejected", 2: "usage", 3: "incomplete", 4: "environment"}

    def run(*arguments: object) -> dict[str, Any]:
        result = cake(*arguments, "--json")
        parsed: dict[str, Any] = json.loads(result.stdout)
        assert parsed["status"] == words[result.exit_code]
        return parsed

    return run


@pytest.fixture
def good(tmp_path: Path) -> Path:
    """A schedule file that is accepted."""
    path = tmp_path / "good.py"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """A schedule file with two errors."""
    path = tmp_path / "bad.py"
    path.write_text(TWO_ERRORS, encoding="utf-8")
    return path


def process(*arguments: object, **options: Any) -> "subprocess.Popen[bytes]":
    """`cake` in a process of its own, for what only a process has: signals and pipes."""
    command = [sys.executable, "-m", "cake.cli", *map(str, arguments)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, **options)


@pytest.fixture
def start() -> Callable[..., "subprocess.Popen[bytes]"]:
    """:func:`process`, for the tests."""
    return process
