"""The public surface of ``cake``, and what importing it may cost: only the standard library."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import cake

ROOT = Path(__file__).parents[1]

SURFACE = {
    "LoadedKernel",
    "__version__",
    "compile_program",
    "explain",
    "inline",
    "parse",
    "schedule",
    "simulate_program",
    "verify_program",
}

PRINT_FOREIGN_MODULES = """
import sys
before = set(sys.modules)
import {module}
loaded = {{name.partition(".")[0] for name in set(sys.modules) - before}}
print(*sorted(loaded - sys.stdlib_module_names - {{"cake"}}))
"""


@pytest.mark.parametrize("module", ["cake", "cake.diag"])
def test_import_loads_only_the_standard_library(module: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PRINT_FOREIGN_MODULES.format(module=module)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == []


def test_the_public_surface_is_pinned() -> None:
    assert set(cake.__all__) == SURFACE
    assert set(dir(cake)) >= SURFACE


def test_every_public_name_is_there() -> None:
    for name in SURFACE - {"__version__"}:
        assert callable(getattr(cake, name)), name


def test_an_unknown_attribute_is_named() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = cake.nonsense


def test_the_stub_has_the_same_names() -> None:
    tree = ast.parse((ROOT / "cake" / "__init__.pyi").read_text(encoding="utf-8"))
    imported = {
        (f"{node.module}", alias.name, alias.asname)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    exports = {(module, name, public) for public, (module, name) in cake._EXPORTS.items()}
    assert imported == exports


def test_a_function_becomes_a_schedule_without_running() -> None:
    program = cake.parse(
        '@cake.schedule(target="sm_80")\n'
        'def fill(y: Tensor[f32, "N"]):\n'
        "    (b,) = grid(cdiv(N, 32))\n"
        "    r = role(warps=1)\n"
        "    with r:\n"
        "        i = b * 32 + lane()\n"
        "        store(y[i], 1.0, mask=i < N)\n"
    ).program()
    assert cake.verify_program(program).status == "accepted"
